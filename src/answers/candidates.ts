import { findPlan } from "../core/plan.ts"
import { parseQuery } from "../search/query.ts"
import type { StoredMessage } from "../store/history/store.ts"
import type { Dex } from "../tools/context.ts"
import { type Source, shareContained, type WeightedQuestion } from "./answering.ts"
import {
  type AnswerScope,
  type FoundMessages,
  ownHistory,
  type PassageRow,
  type PassageSource,
} from "./passage-source.ts"
import type { Passage, Passages } from "./passages.ts"
import { type ProjectSection, projectSections } from "./project-documents.ts"
import { statementsIn } from "./statements.ts"

/** A text that may contain the answer. It gets a number when it is cited. */
export type AnswerCandidate = Source & { text: string; at?: number; cite(): Passage | undefined }

/** The most messages, and the most sections of the project's documents, from which statements are taken. */
const MAX_MESSAGES = 40
const MAX_SECTIONS = 12

/**
 * Texts that may contain the answer: messages of people and agents, and the project's documents, without tool output and
 * thinking.
 */
export async function answerCandidates(
  dex: Dex,
  query: string,
  scope: AnswerScope,
  passages: Passages,
  source: PassageSource = ownHistory(dex, scope),
): Promise<{ question: WeightedQuestion; candidates: AnswerCandidate[]; isComplete: boolean }> {
  const { found, weights } = await source.find({ query, by: "message", limit: MAX_MESSAGES, offset: 0 })
  const question = { text: query, words: parseQuery(query).words, weights }
  const spoken = messageCandidates(found, passages)
  if (scope.among === "history" || scope.collections !== undefined || dex.project === dex.machine.home)
    return { question, candidates: spoken, isComplete: true }
  const documents = await documentCandidates(dex.project, question, passages)
  return { question, candidates: [...spoken, ...documents.found], isComplete: documents.isComplete }
}

function messageCandidates(found: FoundMessages["found"], passages: Passages): AnswerCandidate[] {
  const best = Math.max(...found.map(({ score }) => score), Number.MIN_VALUE)
  return found.flatMap(({ row, message, score }, rank) => {
    // If an answer could cite an earlier answer, it would need no source at all.
    if (row.kind === "dex") return []
    return textsIn(row, message).map(({ text, is }) => ({
      text,
      statements: statementsIn(text),
      is,
      rank,
      score: score / best,
      at: message.at ?? row.ended_at,
      cite: () => passages.add(row, message),
    }))
  })
}

function textsIn(row: PassageRow, { parts, role }: StoredMessage): { text: string; is: Source["is"] }[] {
  return parts.flatMap((part) => {
    if (part.origin === "injected" || (part.type !== "text" && part.type !== "summary")) return []
    const plan = findPlan(part)
    const is =
      row.kind === "document" ? "document" : part.origin === "person" ? "person" : role === "user" ? "plan" : "agent"
    return [{ text: plan ?? part.text, is }]
  })
}

async function documentCandidates(
  root: string,
  question: WeightedQuestion,
  passages: Passages,
): Promise<{ found: AnswerCandidate[]; isComplete: boolean }> {
  const beginnings = question.words.map((word) => word.slice(0, 4))
  const mayContain = (text: string) => {
    const lower = text.toLowerCase()
    return beginnings.some((letters) => lower.includes(letters))
  }
  const { sections, isComplete } = await projectSections(root, mayContain)
  const ordered = sections
    .filter((section) => mayContain(completeText(section)))
    .map((section) => ({ section, covered: shareContained(question, completeText(section)) }))
    .filter(({ covered }) => covered > 0)
    .sort((a, b) => b.covered - a.covered)
    .slice(0, MAX_SECTIONS)
  const best = ordered[0]?.covered ?? 1
  const found = ordered.map(({ section, covered }, rank) => ({
    text: section.text,
    statements: statementsIn(section.text).map((one) => ({ ...one, headings: section.headings })),
    is: "document" as const,
    rank,
    score: covered / best,
    at: section.at,
    cite: () => passages.addSection(section),
  }))
  return { found, isComplete }
}

function completeText({ path, headings, text }: ProjectSection): string {
  return [path, ...headings, text].join("\n")
}
