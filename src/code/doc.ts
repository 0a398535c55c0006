const MAX_DOC_CHARS = 200

/**
 * Returns the first sentence of a comment or docstring, without its markers. Returns undefined if it contains no letters or
 * digits.
 */
export function firstSentence(comment: string): string | undefined {
  const lines: string[] = []
  for (const raw of comment.slice(0, 4_000).split("\n")) {
    const line = withoutMarkers(raw)
    if (DIRECTIVE.test(line)) continue
    if (TAG.test(line) || (line === "" && lines.length > 0)) break
    if (line !== "") lines.push(line)
  }
  const text = lines.join(" ").replace(/\s+/g, " ")
  const sentence = /^.*?[.!?。](?=\s|$)/.exec(text)?.[0] ?? text
  if (!/[\p{L}\p{N}]/u.test(sentence)) return undefined
  return sentence.length > MAX_DOC_CHARS ? `${sentence.slice(0, MAX_DOC_CHARS - 1).trimEnd()}…` : sentence
}

/**
 * Returns the deprecation note in a comment. Returns "" if the comment has the tag without a note, and undefined if it has no
 * tag.
 */
export function deprecationInComment(comment: string): string | undefined {
  if (!/deprecated/i.test(comment)) return undefined
  const match = COMMENT_TAG.exec(comment)
  return match ? shortNote(withoutMarkers(match[1]!)) : undefined
}

/** Like `deprecationInComment`, for attributes, annotations and decorators. */
export function deprecationInMark(mark: string): string | undefined {
  const match = /deprecated|obsolete/i.test(mark) ? ATTRIBUTE.exec(mark) : null
  return match ? shortNote(match[1] ?? "") : undefined
}

/** Matches a deprecation tag. Only comment markers may come before it, because a sentence about `@deprecated` is not a tag. */
const COMMENT_TAG = /^[\s/*#"'!]*(?:@deprecated\b|deprecated:|\.\. deprecated::)[ \t:]*([^\n]*)/im
const ATTRIBUTE =
  /(?:@|\[|\(\(|\\)\s*(?:[\w.\\]{1,80}[.\\])?_{0,2}(?:deprecated|obsolete)(?:attribute)?_{0,2}\b(?:\s*[(=]\s*[^"')\]]{0,80}["']([^"']{0,200})["'])?/i
const DIRECTIVE =
  /^(?:eslint|biome|prettier|tslint|istanbul|c8|v8|webpack|@ts-|ts-|noqa|type:|pylint|mypy|pragma|nolint|go:|\+build|#|!|<\/?summary>$)/i
const TAG = /^(?:@\w|\\\w|:(?:param|return|type|raises)\b|-{3,}$|={3,}$)/

function withoutMarkers(line: string): string {
  return line
    .replace(/^\s*(?:[rbu]{0,2}(?:"""|'''|"|')|\/\*+!?|\*+\/?|\/{2,}!?|#+|<#)?\s?/i, "")
    .replace(/\s*(?:\*+\/|"""|'''|#>)\s*$/, "")
    .replace(/<\/?(?:summary|para|remarks|p)>/g, "")
    .trim()
}

function shortNote(text: string): string {
  const oneLine = text.replace(/\s+/g, " ").trim()
  return oneLine.length > MAX_DOC_CHARS ? `${oneLine.slice(0, MAX_DOC_CHARS - 1).trimEnd()}…` : oneLine
}
