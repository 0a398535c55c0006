import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parseRef } from "../../src/core/ref.ts"
import type { HistoryReader } from "../../src/store/history/store.ts"
import { plain, sentenceHash, sentencesOf } from "../decisions/sentences.ts"
import { openGenuineHome } from "../genuine-home.ts"
import type { Project } from "./project.ts"

export type Half = "build" | "held"

/** A question with the words that answer it, located in the labelled texts. */
export type LabelledQuestion = {
  id: string
  half: Half
  question: string
  /** Complete sentences, lines or commands: any of them answers. */
  sentences: string[]
  /** The facts in a right answer, as hashes of phrases: all those of any list. Nothing answers if there are neither these nor sentences. */
  facts: string[][]
  /** The sentences are in the project's documents. */
  isDocumented: boolean
}

/** Where a labelled sentence is. An `older` one was overtaken; a `part` answers only together with others. */
export type LabelledSentence = { ref?: string; document?: string; sentence: string; older?: boolean; part?: boolean }

type Written = { id: string; half: Half; question: string; answers?: LabelledSentence[]; facts?: string[] }

export const linesOf = <T>(name: string): T[] =>
  readFileSync(new URL(name, import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T)

export async function labelledQuestions(project: Project): Promise<LabelledQuestion[]> {
  const home = await openGenuineHome()
  const labelled: LabelledQuestion[] = []
  for (const { id, half, question, answers = [], facts = [] } of linesOf<Written>("questions.jsonl"))
    labelled.push({
      id,
      half,
      question,
      sentences: await sentencesThatAnswer(answers, project, home.store),
      facts: facts.length === 0 ? [] : [facts],
      isDocumented: answers.every(({ ref }) => ref === undefined),
    })
  home.close()
  return labelled
}

/** Finds the labelled sentences that answer by themselves and still stand. Throws if one of the labels points to nothing. */
export async function sentencesThatAnswer(
  labels: LabelledSentence[],
  project: Project,
  store: HistoryReader,
): Promise<string[]> {
  const found: string[] = []
  for (const { ref, document, sentence, older, part } of labels) {
    const all = ref === undefined ? documentLines(join(project.clone, document!)) : await said(store, ref)
    const text = all.find((one) => sentenceHash(one) === sentence)
    if (text === undefined) throw new Error(`${ref ?? document} does not hold what was labelled`)
    if (!older && !part) found.push(project.mapped(text))
  }
  return found
}

async function said(store: HistoryReader, ref: string): Promise<string[]> {
  const { source, prefix, number } = parseRef(ref)!
  const [message] = await store.messages({ source: source!, id: prefix }, [number!])
  if (!message) return []
  const calls = message.parts.flatMap((part) => (part.type === "tool_call" ? part.text.split("\n").map(plain) : []))
  return [...sentencesOf(message), ...calls]
}

function documentLines(path: string): string[] {
  if (!existsSync(path)) return []
  return readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line) => line.split(/(?<=[.!?])\s+/))
    .map(plain)
}

export function wordsIn(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}

/** Whether one text contains another, word by word. */
export function holdsWords(text: string[], wanted: string[]): boolean {
  if (wanted.length === 0) return false
  return ` ${text.join(" ")} `.includes(` ${wanted.join(" ")} `)
}

/** A fact has at most this many words. */
const LONGEST_FACT = 12

/** Whether a text names all of these facts. */
export function namesAll(text: string[], facts: string[]): boolean {
  const left = new Set(facts)
  for (let from = 0; from < text.length && left.size > 0; from++)
    for (let length = 1; length <= LONGEST_FACT && from + length <= text.length; length++)
      left.delete(factHash(text.slice(from, from + length)))
  return left.size === 0
}

function factHash(words: string[]): string {
  return createHash("sha256")
    .update(`answers ${words.join(" ")}`)
    .digest("hex")
    .slice(0, 12)
}
