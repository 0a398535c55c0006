import { decodeHTMLStrict } from "entities/decode"

/**
 * Stands in for the package `decode-named-character-reference` in the build: Markdown then uses the table of named characters that
 * the parser of HTML brings, instead of a second one of 37 kB.
 * @param {string} name without `&` and `;`
 * @returns {string | false} false if there is no such name
 */
export function decodeNamedCharacterReference(name) {
  const reference = `&${name};`
  const decoded = decodeHTMLStrict(reference)
  return decoded === reference ? false : decoded
}
