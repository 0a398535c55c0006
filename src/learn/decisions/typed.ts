// Separates the lines that a person typed from those that they pasted.

/** The longest sentence that a person types, in characters. A longer one was pasted. */
export const MAX_SENTENCE_CHARS = 500
const FENCE = /^\s*(?:```|"""|~~~)/

/** The lines that the person typed, without fenced blocks, quotes and program output. */
export function typedLines(text: string): string[] {
  const kept: string[] = []
  let fenced = false
  for (const line of text.split("\n")) {
    if (FENCE.test(line)) fenced = !fenced
    else if (!fenced && !isOutput(line)) kept.push(line.trim())
  }
  return kept.filter((line) => line !== "")
}

const OUTPUT =
  /^\s*(?:[>❯$|⎿⏺✓✗+●└├─╭│╰=]|\d{4}-\d\d-\d\d[T ]|\{"|at \S+ \(|(?:---|===) |(?:FAIL|PASS|Error|fatal|warning|remote)\b:|ok\s{2}|[\w./-]+\.\w{1,5}:\d+)/

/** A line of code: a comment, a JSON field, an import, or the end of a block. */
const CODE =
  /^\s*(?:\/\/|\/\*|\*\s|#(?!#|\s*\w+\s*$)\s|"[\w-]+"\s*:|(?:import|const|var|func|def|return|class|export)\s|[\])}]+[;,]?\s*$)|[{;]\s*$/

function isOutput(line: string): boolean {
  return OUTPUT.test(line) || CODE.test(line) || line.length > 2_000 || line.endsWith("   ")
}

const LIST_MARK = /^(?:[-*•]|\(?\d{1,2}[.):]|\(?[A-Za-z][.)]|#\d{1,2})\s+/

export function sentencesOf(line: string): string[] {
  return line
    .replace(LIST_MARK, "")
    .split(/(?<=[.!?…])\s+/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence.length > 3 && sentence.length <= MAX_SENTENCE_CHARS)
}

const REVIEW =
  /^(?:low|medium|high|critical) severity\b|\bconsider (?:adding|using|extracting|removing|checking|caching|exposing|either|whether|clarifying|updating)\b/i
/** Words of the first person. In text pasted from a log or a review, only sentences with them are the person's own. */
export const FIRST_PERSON = /\b(?:I|I'd|I'm|let's|lets|we (?:should|want|need|don't|had|explicitly|are changing))\b/i
/** Markup that agents write and that hardly anybody types. */
const MARKED_UP = /\s—\s|\*\*\S/
const VOICE = /\b(?:I|we|us|our|my|let's|can you|could you)\b/i
/** The number of characters from which a typed message contains "I" or "we". */
const LONG = 250
const MAX_OUTPUT = 1

/** Whether the text is the words of a reviewer or a program. Nobody has decided these yet. */
export function isPasted(text: string, lines: string[]): boolean {
  if (lines.some((line) => REVIEW.test(line))) return true
  if (text.length > LONG && !VOICE.test(lines.join("\n"))) return true
  const made = text.split("\n").filter((line) => isOutput(line) || MARKED_UP.test(line)).length
  return made > MAX_OUTPUT
}
