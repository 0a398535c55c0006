import { planIn } from "../core/plan.ts"
import { wordWeights } from "../search/floor.ts"
import { parseQuery } from "../search/query.ts"
import type { ConversationRow, StoredMessage } from "../store/history/store.ts"
import type { Dex } from "../tools/context.ts"
import { resolveRef } from "../tools/resolve.ts"
import { type AnswerScope, searchWithin } from "./answer-scope.ts"
import { type AskedQuestion, type Source, shareHeld } from "./answering.ts"
import type { Passage, Passages } from "./passages.ts"
import { type ProjectSection, projectSections } from "./project-documents.ts"
import { statementsIn } from "./statements.ts"

/** A text that may hold the answer. It gets a number when it is cited. */
export type AnswerCandidate = Source & { text: string; at?: number; cite(): Passage | undefined }

/** So many messages are looked through for statements, and so many sections of the project's documents. */
const MOST_MESSAGES = 40
const MOST_SECTIONS = 12

export async function questionOf(dex: Dex, asked: string): Promise<AskedQuestion> {
  const query = parseQuery(asked)
  const index = await dex.index()
  return {
    text: asked,
    words: query.words,
    weights: index ? await wordWeights(index, query) : query.words.map(() => 1),
  }
}

/** What people and agents said, and what the project's documents say: no output of tools, no thoughts. */
export async function answerCandidates(
  dex: Dex,
  question: AskedQuestion,
  scope: AnswerScope,
  passages: Passages,
): Promise<{ candidates: AnswerCandidate[]; isWhole: boolean }> {
  const said = await saidCandidates(dex, question, scope, passages)
  if (scope.among === "history" || scope.collections !== undefined || dex.project === dex.machine.home)
    return { candidates: said, isWhole: true }
  const { found, isWhole } = await documentCandidates(dex.project, question, passages)
  return { candidates: [...said, ...found], isWhole }
}

async function saidCandidates(
  dex: Dex,
  question: AskedQuestion,
  scope: AnswerScope,
  passages: Passages,
): Promise<AnswerCandidate[]> {
  const store = await dex.store()
  const wanted = { query: question.text, by: "message" as const, limit: MOST_MESSAGES, offset: 0 }
  const { results } = await searchWithin(dex, scope, wanted)
  const best = Math.max(...results.map((one) => one.score_final), Number.MIN_VALUE)
  const candidates: AnswerCandidate[] = []
  for (const [rank, { id, message_index, score_final }] of results.entries()) {
    const { row } = await resolveRef(dex, id)
    // An answer that could cite an earlier answer would need no source at all.
    if (row.kind === "dex") continue
    const [message] = await store.messages(row.ref, [message_index])
    if (!message) continue
    for (const { text, is } of saidIn(row, message))
      candidates.push({
        text,
        statements: statementsIn(text),
        is,
        rank,
        score: score_final / best,
        ...((message.at ?? row.ended_at) !== undefined && { at: (message.at ?? row.ended_at)! }),
        cite: () => passages.add(row, message),
      })
  }
  return candidates
}

function saidIn(row: ConversationRow, { parts, role }: StoredMessage): { text: string; is: Source["is"] }[] {
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
