const MAX_DOC_CHARS = 200

/** The first sentence of a comment or docstring, without its markers. Undefined if it contains nothing readable. */
export function firstSentence(comment: string): string | undefined {
  const lines: string[] = []
  for (const raw of comment.slice(0, 4_000).split("\n")) {
    const line = bare(raw)
    if (DIRECTIVE.test(line)) continue
    if (TAG.test(line) || (line === "" && lines.length > 0)) break
    if (line !== "") lines.push(line)
  }
  const text = lines.join(" ").replace(/\s+/g, " ")
  const sentence = /^.*?[.!?。](?=\s|$)/.exec(text)?.[0] ?? text
  if (!/[\p{L}\p{N}]/u.test(sentence)) return undefined
  return sentence.length > MAX_DOC_CHARS ? `${sentence.slice(0, MAX_DOC_CHARS - 1).trimEnd()}…` : sentence
}

/** The deprecation note in a comment. Empty if the comment has only the tag, undefined if it has none. */
export function deprecationInComment(comment: string): string | undefined {
  if (!/deprecated/i.test(comment)) return undefined
  const found = COMMENT_MARK.exec(comment)
  return found ? note(bare(found[1]!)) : undefined
}

/** Like `deprecationInComment`, for attributes, annotations and decorators. */
export function deprecationInMark(mark: string): string | undefined {
  const found = /deprecated|obsolete/i.test(mark) ? ATTRIBUTE.exec(mark) : null
  return found ? note(found[1] ?? "") : undefined
}

/** A deprecation tag. Only comment markers may come before it, because a sentence about `@deprecated` is not a tag. */
const COMMENT_MARK = /^[\s/*#"'!]*(?:@deprecated\b|deprecated:|\.\. deprecated::)[ \t:]*([^\n]*)/im
const ATTRIBUTE =
  /(?:@|\[|\(\(|\\)\s*(?:[\w.\\]{1,80}[.\\])?_{0,2}(?:deprecated|obsolete)(?:attribute)?_{0,2}\b(?:\s*[(=]\s*[^"')\]]{0,80}["']([^"']{0,200})["'])?/i
const DIRECTIVE =
  /^(?:eslint|biome|prettier|tslint|istanbul|c8|v8|webpack|@ts-|ts-|noqa|type:|pylint|mypy|pragma|nolint|go:|\+build|#|!|<\/?summary>$)/i
const TAG = /^(?:@\w|\\\w|:(?:param|return|type|raises)\b|-{3,}$|={3,}$)/

function bare(line: string): string {
  return line
    .replace(/^\s*(?:[rbu]{0,2}(?:"""|'''|"|')|\/\*+!?|\*+\/?|\/{2,}!?|#+|<#)?\s?/i, "")
    .replace(/\s*(?:\*+\/|"""|'''|#>)\s*$/, "")
    .replace(/<\/?(?:summary|para|remarks|p)>/g, "")
    .trim()
}

function note(text: string): string {
  const short = text.replace(/\s+/g, " ").trim()
  return short.length > MAX_DOC_CHARS ? `${short.slice(0, MAX_DOC_CHARS - 1).trimEnd()}…` : short
}
