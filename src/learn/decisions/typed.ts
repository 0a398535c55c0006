// Separates the lines that a person typed from those that they pasted.

/** The longest sentence that a person types, in characters. A longer one was pasted. */
export const MAX_SENTENCE_CHARS = 500
const FENCE = /^\s*(?:```|"""|~~~)/

/** The lines that the person typed, without fenced blocks, quotes and program output. */
export function typedLines(text: string): string[] {
  const typed: string[] = []
  let isFenced = false
  for (const line of text.split("\n")) {
    if (FENCE.test(line)) isFenced = !isFenced
    else if (!isFenced && !isOutput(line)) typed.push(line.trim())
  }
  return typed.filter((line) => line !== "")
}

const OUTPUT_LINE =
  /^\s*(?:[>❯$|⎿⏺✓✗+●└├─╭│╰=]|\d{4}-\d\d-\d\d[T ]|\{"|at \S+ \(|(?:---|===) |(?:FAIL|PASS|Error|fatal|warning|remote)\b:|ok\s{2}|[\w./-]+\.\w{1,5}:\d+)/

/** Matches a line of code: a comment, a JSON field, an import, or the end of a block. */
const CODE_LINE =
  /^\s*(?:\/\/|\/\*|\*\s|#(?!#|\s*\w+\s*$)\s|"[\w-]+"\s*:|(?:import|const|var|func|def|return|class|export)\s|[\])}]+[;,]?\s*$)|[{;]\s*$/

function isOutput(line: string): boolean {
  return OUTPUT_LINE.test(line) || CODE_LINE.test(line) || line.length > 2_000 || line.endsWith("   ")
}

export const LIST_MARK = /^(?:[-*•]|\(?\d{1,2}[.):]|\(?[A-Za-z][.)]|#\d{1,2})\s+/

export function sentencesOf(line: string): string[] {
  return line
    .replace(LIST_MARK, "")
    .split(/(?<=[.!?…])\s+/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence.length > 3 && sentence.length <= MAX_SENTENCE_CHARS)
}

const REVIEW_COMMENT =
  /^(?:low|medium|high|critical) severity\b|\bconsider (?:adding|using|extracting|removing|checking|caching|exposing|either|whether|clarifying|updating)\b/i
/** Matches the first person. In text pasted from a log or a review, only sentences that match are the person's own. */
export const FIRST_PERSON = /\b(?:I|I'd|I'm|let's|lets|we (?:should|want|need|don't|had|explicitly|are changing))\b/i
/** Matches markup that agents write and people hardly ever type. */
const AGENT_MARKUP = /\s—\s|\*\*\S/
const PRONOUN = /\b(?:I|we|us|our|my|let's|can you|could you)\b/i
/** A text that is longer than this, in characters, and does not contain "I" or "we" was pasted. */
const MAX_IMPERSONAL_LENGTH = 250
const MAX_MACHINE_LINES = 1

/** Whether a reviewer or a program wrote the text. What such a text says is not a decision. */
export function isPastedText(text: string, lines: string[]): boolean {
  if (lines.some((line) => REVIEW_COMMENT.test(line))) return true
  if (text.length > MAX_IMPERSONAL_LENGTH && !PRONOUN.test(lines.join("\n"))) return true
  const machineLines = text.split("\n").filter((line) => isOutput(line) || AGENT_MARKUP.test(line)).length
  return machineLines > MAX_MACHINE_LINES
}
