import { findPipedPassword } from "./commands.ts"
import { formsAfter } from "./forms.ts"
import { findManifest } from "./manifests.ts"
import type { RereadBudget, Span } from "./rules.ts"
import { ruleFor, type SecretKind, secretKind } from "./secret-names.ts"
import { findColumn } from "./tables.ts"
import { isGenerated, isPassword } from "./values.ts"

// Finds secrets whose name and value are not joined by a colon or an equals sign: `name: DB_PASSWORD` above `value: …`,
// `<password>…</password>`, `.setPassword("…")`, `define('DB_PASSWORD', '…')`, a cell next to its name, `ENV API_TOKEN …`.

/** The number of characters to check before a name. */
const MAX_CHARS_BEFORE = 300
const MAX_NAME_LENGTH = 60

/**
 * Finds the secrets that the name at `at` announces. Returns the position before which nothing more needs to be searched, or 0.
 */
export function findSeparatedValue(text: string, at: number, spans: Span[], rereads: RereadBudget): number {
  let end = at
  while (end < at + MAX_NAME_LENGTH && isNameCharacter(text.charCodeAt(end))) end++
  const forms = formsAfter(text.charCodeAt(end))
  if (!forms && end < text.length) return 0
  if (isProse(text, at, end)) return 0
  let start = at
  while (start > at - MAX_NAME_LENGTH && start > 0 && isNameCharacter(text.charCodeAt(start - 1))) start--
  const name = text.slice(start, end)
  let textBefore: string | undefined
  for (const { after, before: beforePattern, name: namePattern, kind: formKind, isCertain, mustBeStrong } of forms ??
    []) {
    if (namePattern && !namePattern.test(name)) continue
    after.lastIndex = end
    const match = after.exec(text)
    if (!match) continue
    textBefore ??= text.slice(Math.max(0, start - MAX_CHARS_BEFORE), start)
    if (beforePattern && !beforePattern.test(textBefore)) continue
    const kind = formKind ?? secretKind(name)
    if (!kind) continue
    const [from, to] = match.indices!.find((place, i) => i > 0 && place)!
    const value = text.slice(from, to).replace(/[.,;:!?)]+$/, "")
    if (!isSecret(value, kind, isCertain === true) || (mustBeStrong && !isStrong(value))) continue
    spans.push({ start: from, end: from + value.length, rule: ruleFor(kind) })
    return to
  }
  const piped = name === "chpasswd" ? findPipedPassword(text, start) : undefined
  if (piped) spans.push(piped)
  if (name === "Secret" && findManifest(text, start, rereads, spans)) return end
  findColumn(text, start, end, rereads, spans)
  return 0
}

/**
 * Whether the name is only a word in a sentence: a space and a letter follow. Most names are such words, and this check is quick.
 */
function isProse(text: string, at: number, end: number): boolean {
  const nextCode = text.charCodeAt(end + 1) | 32
  if (text.charCodeAt(end) !== 32 || nextCode < 97 || nextCode > 122 || text.charCodeAt(at) < 97) return false
  return !VALUE_AFTER_SPACE.test(text.slice(at, end))
}

/** Names, or ends of names, whose value follows after a single space. */
const VALUE_AFTER_SPACE = /^(?:pass(?:word|wd|phrase)?|keygen|ied|pass)$/

function isSecret(value: string, kind: SecretKind, isCertain: boolean): boolean {
  if (value.includes("[REDACTED")) return false
  if (kind === "password") return isPassword(value, isCertain)
  return kind === "token" && isGenerated(value)
}

function isStrong(value: string): boolean {
  return /[A-Za-z]/.test(value) && /\d/.test(value) && /[!@#$%^&*?+]/.test(value) && !/[/=({[]/.test(value)
}

export function isNameCharacter(code: number): boolean {
  return (
    (code >= 97 && code <= 122) ||
    (code >= 65 && code <= 90) ||
    (code >= 45 && code <= 57 && code !== 47) ||
    code === 95
  )
}
