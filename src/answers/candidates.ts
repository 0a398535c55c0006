import { planIn } from "../core/plan.ts"
import { parseQuery } from "../search/query.ts"
import type { StoredMessage } from "../store/history/store.ts"
import type { Dex } from "../tools/context.ts"
import { type AskedQuestion, type Source, shareHeld } from "./answering.ts"
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

/** Statements are taken from at most this many messages, and this many sections of the project's documents. */
const MOST_MESSAGES = 40
const MOST_SECTIONS = 12

/** Messages of people and agents, and the project's documents. Tool output and thinking are left out. */
export async function answerCandidates(
  dex: Dex,
  asked: string,
  scope: AnswerScope,
  passages: Passages,
  source: PassageSource = ownHistory(dex, scope),
): Promise<{ question: AskedQuestion; candidates: AnswerCandidate[]; isWhole: boolean }> {
  const { found, weights } = await source.find({ query: asked, by: "message", limit: MOST_MESSAGES, offset: 0 })
  const question = { text: asked, words: parseQuery(asked).words, weights }
  const said = saidCandidates(found, passages)
  if (scope.among === "history" || scope.collections !== undefined || dex.project === dex.machine.home)
    return { question, candidates: said, isWhole: true }
  const documents = await documentCandidates(dex.project, question, passages)
  return { question, candidates: [...said, ...documents.found], isWhole: documents.isWhole }
}

function saidCandidates(found: FoundMessages["found"], passages: Passages): AnswerCandidate[] {
  const best = Math.max(...found.map(({ score }) => score), Number.MIN_VALUE)
  return found.flatMap(({ row, message, score }, rank) => {
    // If an answer could cite an earlier answer, it would need no source at all.
    if (row.kind === "dex") return []
    return saidIn(row, message).map(({ text, is }) => ({
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

function saidIn(row: PassageRow, { parts, role }: StoredMessage): { text: string; is: Source["is"] }[] {
  return parts.flatMap((part) => {
    if (part.origin === "injected" || (part.type !== "text" && part.type !== "summary")) return []
    const plan = planIn(part)
    const is =
      row.kind === "document" ? "document" : part.origin === "person" ? "person" : role === "user" ? "plan" : "agent"
    return [{ text: plan ?? part.text, is }]
  })
}

async function documentCandidates(
  root: string,
  question: AskedQuestion,
  passages: Passages,
): Promise<{ found: AnswerCandidate[]; isWhole: boolean }> {
  const beginnings = question.words.map((word) => word.slice(0, 4))
  const mayHold = (text: string) => {
    const lower = text.toLowerCase()
    return beginnings.some((letters) => lower.includes(letters))
  }
  const { sections, isWhole } = await projectSections(root, mayHold)
  const ordered = sections
    .filter((section) => mayHold(wholeText(section)))
    .map((section) => ({ section, held: shareHeld(question, wholeText(section)) }))
    .filter(({ held }) => held > 0)
    .sort((a, b) => b.held - a.held)
    .slice(0, MOST_SECTIONS)
  const best = ordered[0]?.held ?? 1
  const found = ordered.map(({ section, held }, rank) => ({
    text: section.text,
    statements: statementsIn(section.text).map((one) => ({ ...one, headings: section.headings })),
    is: "document" as const,
    rank,
    score: held / best,
    at: section.at,
    cite: () => passages.addSection(section),
  }))
  return { found, isWhole }
}

function wholeText({ path, headings, text }: ProjectSection): string {
  return [path, ...headings, text].join("\n")
}
