import { findPlan } from "../core/plan.ts"
import { parseQuery } from "../search/query.ts"
import type { StoredMessage } from "../store/history/store.ts"
import type { Dex } from "../tools/context.ts"
import { type RankedText, shareWithPairs, type WeightedQuestion } from "./answering.ts"
import {
  type AnswerScope,
  type FoundMessages,
  ownHistory,
  type PassageRow,
  type PassageSource,
} from "./passage-source.ts"
import type { Passage, Passages } from "./passages.ts"
import { codePieces } from "./project-code.ts"
import { type ProjectSection, projectSections } from "./project-documents.ts"
import { statementsIn } from "./statements.ts"

/** A text that may contain the answer. Citing it gives it a number. */
export type AnswerCandidate = RankedText & {
  text: string
  /** The title of the conversation, or the path of the document. */
  title: string
  at?: number
  cite(): Passage | undefined
}

/** The maximum number of messages, and of sections of the project's documents, from which statements are taken. */
const MAX_MESSAGES = 40
const MAX_SECTIONS = 12

/**
 * Finds texts that may contain the answer in messages and in the project's documents. Tool output and thinking are left out.
 */
export async function answerCandidates(
  dex: Dex,
  query: string,
  scope: AnswerScope,
  passages: Passages,
  source: PassageSource = ownHistory(dex, scope),
): Promise<{ question: WeightedQuestion; candidates: AnswerCandidate[]; isComplete: boolean }> {
  const { found: matches, weights } = await source.find({ query, by: "message", limit: MAX_MESSAGES, offset: 0 })
  const question = { text: query, words: parseQuery(query).words, weights }
  const fromMessages = messageCandidates(matches, passages)
  if (scope.among === "history" || scope.collections !== undefined || dex.place === dex.machine.home)
    return { question, candidates: fromMessages, isComplete: true }
  const documents = await documentCandidates(dex.place, question, passages)
  const code =
    scope.among === "docs" ? { candidates: [], isComplete: true } : await codeCandidates(dex, question, passages)
  return {
    question,
    candidates: [...fromMessages, ...documents.candidates, ...code.candidates],
    isComplete: documents.isComplete && code.isComplete,
  }
}

/** Settings, constants, tasks and comments of the project's tracked files. Each is one statement. */
async function codeCandidates(
  { place, signal }: Dex,
  question: WeightedQuestion,
  passages: Passages,
): Promise<{ candidates: AnswerCandidate[]; isComplete: boolean }> {
  const { pieces, isComplete } = await codePieces(place, question, signal)
  const bestShare = pieces[0]?.share ?? 1
  const candidates = pieces.map((piece, rank) => {
    const { text, headings, path, at, share } = piece
    const statement = { start: 0, end: text.length, text, kind: "code" as const, headings, lead: "", index: 0 }
    return {
      ...{ text, title: path, statements: [statement], textKind: "document" as const },
      ...{ rank, score: share / bestShare, at, cite: () => passages.addSection(piece) },
    }
  })
  return { candidates, isComplete }
}

function messageCandidates(matches: FoundMessages["found"], passages: Passages): AnswerCandidate[] {
  const bestScore = Math.max(...matches.map(({ score }) => score), Number.MIN_VALUE)
  return matches.flatMap(({ row, message, score }, rank) => {
    // dex's own chats are left out: an answer that could cite an earlier answer would need no real source.
    if (row.kind === "dex") return []
    return textsIn(row, message).map(({ text, textKind }) => ({
      text,
      title: row.title?.text ?? "",
      statements: statementsIn(text),
      textKind,
      rank,
      score: score / bestScore,
      at: message.at ?? row.ended_at,
      cite: () => passages.add(row, message),
    }))
  })
}

function textsIn(
  row: PassageRow,
  { parts, role }: StoredMessage,
): { text: string; textKind: RankedText["textKind"] }[] {
  return parts.flatMap((part) => {
    if (part.origin === "injected" || (part.type !== "text" && part.type !== "summary")) return []
    const plan = findPlan(part)
    const textKind =
      row.kind === "document" ? "document" : part.origin === "person" ? "person" : role === "user" ? "plan" : "agent"
    return [{ text: plan ?? part.text, textKind }]
  })
}

async function documentCandidates(
  root: string,
  question: WeightedQuestion,
  passages: Passages,
): Promise<{ candidates: AnswerCandidate[]; isComplete: boolean }> {
  const beginnings = question.words.map((word) => word.slice(0, 4))
  const mayContain = (text: string) => {
    const lower = text.toLowerCase()
    return beginnings.some((letters) => lower.includes(letters))
  }
  const { sections, isComplete } = await projectSections(root, mayContain)
  const bestSections = sections
    .filter((section) => mayContain(completeText(section)))
    .map((section) => ({ section, covered: shareWithPairs(question, completeText(section)) }))
    .filter(({ covered }) => covered > 0)
    .sort((a, b) => b.covered - a.covered)
    .slice(0, MAX_SECTIONS)
  const bestShare = bestSections[0]?.covered ?? 1
  const candidates = bestSections.map(({ section, covered }, rank) => ({
    text: section.text,
    title: section.path,
    statements: statementsIn(section.text).map((one) => ({ ...one, headings: section.headings })),
    textKind: "document" as const,
    rank,
    score: covered / bestShare,
    at: section.at,
    cite: () => passages.addSection(section),
  }))
  return { candidates, isComplete }
}

function completeText({ path, headings, text }: ProjectSection): string {
  return [path, ...headings, text].join("\n")
}
