import { Parser } from "acorn"
import jsx from "acorn-jsx"
import { mdxjs } from "micromark-extension-mdxjs"
import { messageOf } from "../core/error.ts"
import { parseMarkdown } from "./markdown.ts"
import type { ParsedDocument } from "./sections.ts"

/**
 * Parses MDX. Headings between the tags of a component also begin sections. Text that is not valid MDX is parsed as Markdown.
 */
export function parseMdx(text: string): ParsedDocument {
  try {
    return parseMarkdown(text, mdxjs({ acorn: boundedAcorn(), addResult: false }))
  } catch (error) {
    const parsed = parseMarkdown(text)
    return {
      ...parsed,
      problems: [...parsed.problems, `Read as Markdown, because it does not parse as MDX: ${messageOf(error)}`],
    }
  }
}

const MAX_SCRIPT_CHARS = 2_000_000

/**
 * Creates a script parser that refuses to read more than MAX_SCRIPT_CHARS. At every blank line and brace at which a script may
 * end, the MDX grammar tries to parse the script again, so the limit applies to all attempts in a document together.
 */
function boundedAcorn(): NonNullable<NonNullable<Parameters<typeof mdxjs>[0]>["acorn"]> {
  const parser = Parser.extend(jsx())
  let chars = 0
  const spendBudget = (source: string) => {
    chars += source.length
    // The grammar reads the position of an error from `pos`.
    if (chars > MAX_SCRIPT_CHARS)
      throw Object.assign(new Error("its scripts take too long to parse"), { pos: 0, raisedAt: -1 })
  }
  return {
    parse: (source, options) => {
      spendBudget(source)
      return parser.parse(source, options)
    },
    parseExpressionAt: (source, position, options) => {
      spendBudget(source)
      return parser.parseExpressionAt(source, position, options)
    },
  }
}
