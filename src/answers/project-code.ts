import { lstat, realpath } from "node:fs/promises"
import { join } from "node:path"
import { type LineStretch, linesWith } from "../git/lines-with.ts"
import { redactText } from "../redact/redact.ts"
import { shareContained, shareWithPairs, type WeightedQuestion } from "./answering.ts"
import type { ProjectSection } from "./project-documents.ts"

/**
 * A few lines of code or configuration that state something: a setting, a constant, a task, or a comment with what it describes.
 * `share` says how much of the question they contain, with a bonus for pairs of words.
 */
export type CodePiece = ProjectSection & { share: number }

/** git searches for this many of the question's rarest words. */
const MAX_WORDS = 6
/** A word that is in most conversations of the project is in most of its files too. */
const MIN_WEIGHT = 1
/** Stems are cut to this length, so that other forms and names that contain them are found. */
const STEM_LENGTH = 5
const MAX_PIECES = 8
const MAX_PIECE_CHARS = 700
/** A piece must contain at least this share of the question, with its path and heading. Code repeats common words everywhere. */
const MIN_SHARE = 0.65
const MAX_LINES_ABOVE = 8
const MAX_LINES_BELOW = 5

const COMMENT = /^\s*(?:\/\/|#(?!\[|!)|\/?\*|--\s|;|"""|<!--)/
const CONFIG_FILE =
  /(?:^|\/)(?:\.[\w.-]+|[\w.-]+\.(?:toml|ya?ml|json|ini|cfg|conf|env|properties|sh|gradle|mk|tf)|Makefile|Dockerfile|justfile|Procfile|Rakefile|[\w-]+)$/i
/** A name that gets a literal value, an option of a command line, or a task. */
const STATES =
  /[=:]\s*(?:["'`\d[{(]|true\b|false\b|-\d|time\.|\$)|["'`]--?[a-z]|^\s*(?:export|const|static|final|let|var|run|default)\b|\bdefault\b|^\s*[\w.-]+\s*[:=]/i
const CONFIG_HEADING = /^\s*\[+([^\]]+)\]+\s*$/

/** The pieces of the project's tracked code and configuration that contain most of the question, best first. */
export async function codePieces(
  root: string,
  question: WeightedQuestion,
  signal?: AbortSignal,
): Promise<{ pieces: CodePiece[]; isComplete: boolean }> {
  const words = question.words
    .map((word, i) => ({ word, weight: question.weights[i]! }))
    .filter(({ word, weight }) => weight >= MIN_WEIGHT && word.length > 2)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, MAX_WORDS)
    .map(({ word }) => word.slice(0, STEM_LENGTH).toLowerCase())
  if (words.length === 0) return { pieces: [], isComplete: true }
  const tests = /\btests?\b/i.test(question.text)
  const found = await linesWith(root, [...new Set(words)], { tests, signal })
  if (found === undefined) return { pieces: [], isComplete: true }
  const pieces = found.stretches
    .flatMap((stretch) => piecesIn(stretch, words))
    .map((piece) => ({ ...piece, all: [piece.path, ...piece.headings, piece.text].join("\n") }))
    .filter(({ all }) => mayContainEnough(question, all) && shareContained(question, all) >= MIN_SHARE)
    .map(({ all, ...piece }) => ({ ...piece, share: shareWithPairs(question, all) }))
    .sort((a, b) => b.share - a.share)
  const best: CodePiece[] = []
  const realRoot = await realpath(root)
  for (const piece of pieces.slice(0, MAX_PIECES)) {
    const file = join(realRoot, piece.path)
    // A link in the path leads to something that is not the project's.
    const stats = (await realpath(file).catch(() => undefined)) === file ? await lstat(file) : undefined
    if (stats?.isFile()) best.push({ ...piece, text: redactText(piece.text), at: Math.trunc(stats.mtimeMs) })
  }
  return { pieces: best, isComplete: found.isComplete }
}

/** How many first letters all forms of a word share. */
const SHARED_LETTERS = 3

/** False for most pieces that contain too little of the question, at a fraction of the cost of comparing stems. */
function mayContainEnough({ words, weights }: WeightedQuestion, text: string): boolean {
  const lower = text.toLowerCase()
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const possible = weights.reduce(
    (sum, weight, i) => sum + (lower.includes(words[i]!.slice(0, SHARED_LETTERS).toLowerCase()) ? weight : 0),
    0,
  )
  return possible >= MIN_SHARE * total
}

function piecesIn({ path, first, lines }: LineStretch, words: string[]) {
  const isConfig = CONFIG_FILE.test(path)
  const pieces: Omit<ProjectSection, "at">[] = []
  let end = -1
  for (const [i, line] of lines.entries()) {
    const lower = line.toLowerCase()
    if (i <= end || !words.some((word) => lower.includes(word))) continue
    const [from, to] = isConfig ? paragraphAround(lines, i) : definitionAround(lines, i)
    end = to
    const own = lines.slice(from, to + 1)
    const text = own.join("\n")
    if (text.length > MAX_PIECE_CHARS || !own.some((one) => (isConfig || !COMMENT.test(one)) && STATES.test(one)))
      continue
    const heading = lines.slice(0, from + 1).findLast((one) => CONFIG_HEADING.test(one))
    pieces.push({ path, line: first + from, headings: heading ? [CONFIG_HEADING.exec(heading)![1]!] : [], text })
  }
  return pieces
}

/** The lines without an empty line between them. */
function paragraphAround(lines: string[], index: number): [first: number, last: number] {
  let [first, last] = [index, index]
  while (first > 0 && index - first < MAX_LINES_ABOVE && lines[first - 1]!.trim() !== "") first--
  while (last + 1 < lines.length && last - index < MAX_LINES_BELOW && lines[last + 1]!.trim() !== "") last++
  return [first, last]
}

/** The comment above a line of code and the line, or a comment and the line that it describes. */
function definitionAround(lines: string[], index: number): [first: number, last: number] {
  let [first, last] = [index, index]
  while (last + 1 < lines.length && COMMENT.test(lines[last]!) && last - index < MAX_LINES_ABOVE) last++
  while (first > 0 && COMMENT.test(lines[first - 1]!) && index - first < MAX_LINES_ABOVE) first--
  return [first, last]
}
