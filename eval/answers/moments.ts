import { readFileSync } from "node:fs"
import { join } from "node:path"
import { DAY_MS } from "../../src/core/dates.ts"
import { parseCompleteRef } from "../../src/core/ref.ts"
import type { Item, Moment } from "../../src/core/suggestion.ts"
import { pathBelow, placeOf } from "../../src/learn/paths.ts"
import type { HistoryReader, StoredMessage } from "../../src/store/history/store.ts"
import type { Session } from "../../src/suggest/finders/finder.ts"
import { recall } from "../../src/suggest/recall/find.ts"
import { recalledCandidate } from "../../src/suggest/recall/recall.ts"
import { RELEVANCE_FLOOR, RELEVANCE_WEIGHTS, relevanceOf } from "../../src/suggest/relevance.ts"
import { candidatesFor, MAX_ITEMS, suggestItems } from "../../src/suggest/suggest.ts"
import { identifiedPlace } from "../blame/places.ts"
import { sentenceHash } from "../decisions/sentences.ts"
import { openGenuineHome } from "../genuine-home.ts"
import { openHome } from "../home.ts"
import { genuineCorpus } from "../sets/corpus.ts"
import { inTime, type Told } from "../suggest/replay.ts"
import { judgePrompt, type PromptLabel, type PromptResult } from "./prompts.ts"

// At each labelled moment, what would be suggested from what was known before its conversation began?
//
// The rule, written before anything was measured: an offer is helpful if it points at a labelled helpful message, that is
// - its ref is in the same conversation, at most NEAR messages away; for a fix, away from its failure, its remedy, or between
// - or it has no ref and names a file that was edited in that conversation at most NEAR_EDIT messages away.
// A ref without a message is not near. Each moment is evaluated alone: earlier suggestions do not suppress later ones.

const NEAR = 25
const NEAR_EDIT = 10
/** The same moments this much later: no offer may become more likely. */
const LATER_DAYS = [1, 30, 270]

export type Label = {
  id: string
  half: "build" | "held"
  at: string
  kind: "prompt" | "error" | "file"
  input: { path?: string; prompt?: string; error?: string; line?: string }
  helpful: { ref: string }[]
} & Partial<Pick<PromptLabel, "verdict" | "related">>

export type MomentFigures = {
  moments: number
  pushed: number
  /** Of the pushed suggestions. */
  helpful: number
  /** Moments at which something labelled would have helped … */
  helpable: number
  /** … of which the project's own history contained it by then … */
  known: number
  /** … and at which it was pushed. */
  helped: number
  /** Moments at which nothing would have helped, and those of them at which nothing was pushed. */
  needless: number
  silent: number
  /** Candidates at all these moments, and how many of them are more likely 1, 30 or 270 days later. */
  candidates: number
  rising: number
}

/** The suggestions pushed at one moment, for people who read the failures in the half for building. */
export type MomentResult = { label: Label; items: Item[]; helpful: boolean[]; known: boolean; helped: boolean }

/** The figures of the moments that were chosen to be of all kinds, each in the project as its developer's folder. */
export async function measureMoments(): Promise<{
  build: MomentFigures
  held: MomentFigures
  results: MomentResult[]
}> {
  const moments = labelsIn("moments.jsonl").filter(({ verdict }) => verdict === undefined)
  const labels = Map.groupBy(moments, ({ at }) => refOf(at).id)
  const home = await openGenuineHome()
  const figures = { build: noFigures(), held: noFigures() }
  const results: MomentResult[] = []
  const edits = editsNear(home.store)
  for await (const { one, knowledge } of inTime(home.store, join(home.dir, "moments-knowledge.db"))) {
    for (const label of labels.get(one.row.ref.id) ?? []) {
      const [moment, session] = momentAt(one, label)
      const sources = { knowledge }
      const options = { weights: RELEVANCE_WEIGHTS, floor: RELEVANCE_FLOOR, maxItems: MAX_ITEMS }
      const items = suggestItems(sources, moment, session, options)
      const helpful = await Promise.all(items.map((item) => isHelpful(item, label, edits)))
      const known = await isKnown(home.store, one, label)
      const result = { label, items, helpful, known, helped: helpful.includes(true) }
      results.push(result)
      count(figures[label.half], result)
      countRising(figures[label.half], (at) => candidatesFor(sources, { ...moment, at }, session), moment.at)
    }
  }
  home.close()
  return { ...figures, results }
}

/**
 * The prompts drawn from all prompts, asked of somebody who has a clone of the repository: all conversations about it are then in
 * one project.
 */
export async function measurePrompts(): Promise<{ prompts: PromptResult[]; results: MomentResult[] }> {
  const labels = Map.groupBy(labelsIn("moments.jsonl"), ({ at }) => refOf(at).id)
  const home = await openHome({
    name: "prompts",
    unit: "conversation",
    chats: { transcripts: genuineCorpus() },
    questions: [],
  })
  await identifiedPlace(home, "clone")
  const results: MomentResult[] = []
  const prompts: PromptResult[] = []
  const edits = editsNear(home.store)
  for await (const { one, knowledge } of inTime(home.store, join(home.dir, "prompts-knowledge.db"))) {
    for (const label of labels.get(one.row.ref.id) ?? []) {
      const { half, verdict, related = [] } = label
      if (verdict === undefined) continue
      const [moment, session] = momentAt(one, label)
      const row = await home.store.conversation(one.row.ref)
      const recalled = recall(knowledge, moment, placeOf(row!))
      const sources = { knowledge, recalled: recalled && (await recalledCandidate(home.store, recalled, moment)) }
      const options = { weights: RELEVANCE_WEIGHTS, floor: RELEVANCE_FLOOR, maxItems: MAX_ITEMS }
      const items = suggestItems(sources, moment, session, options)
      const helpful = await Promise.all(items.map((item) => isHelpful(item, label, edits)))
      results.push({ label, items, helpful, known: true, helped: helpful.includes(true) })
      prompts.push(await judgePrompt(home.store, half, { ...label, verdict, related }, items, helpful))
    }
  }
  home.close()
  return { prompts, results }
}

export function labelsIn(file: string): Label[] {
  const lines = readFileSync(new URL(file, import.meta.url), "utf8")
    .trim()
    .split("\n")
  return lines.map((line) => JSON.parse(line) as Label)
}

function noFigures(): MomentFigures {
  const none = { moments: 0, pushed: 0, helpful: 0, helpable: 0, known: 0, helped: 0 }
  return { ...none, needless: 0, silent: 0, candidates: 0, rising: 0 }
}

function count(sum: MomentFigures, { label, items, helpful, known, helped }: MomentResult): void {
  sum.moments++
  sum.pushed += items.length
  sum.helpful += helpful.filter((one) => one).length
  if (label.helpful.length === 0) {
    sum.needless++
    if (items.length === 0) sum.silent++
    return
  }
  sum.helpable++
  if (known) sum.known++
  if (helped) sum.helped++
}

type Found = ReturnType<typeof candidatesFor>

function countRising(sum: MomentFigures, found: (at: number) => Found, at: number): void {
  const likely = (candidates: Found) =>
    new Map(candidates.map(({ key, kind, features }) => [key, relevanceOf(kind, features, RELEVANCE_WEIGHTS)]))
  let before = likely(found(at))
  const rising = new Set<string>()
  sum.candidates += before.size
  for (const days of LATER_DAYS) {
    const later = likely(found(at + days * DAY_MS))
    for (const [key, relevance] of later) if (relevance > (before.get(key) ?? 1) + 1e-9) rising.add(key)
    before = later
  }
  sum.rising += rising.size
}

function refOf(text: string): { id: string; number: number } {
  const { id, number } = parseCompleteRef(text) ?? {}
  if (id === undefined || number === undefined) throw new Error(`${text} does not name a message`)
  return { id, number }
}

type Edits = (id: string, number: number) => Promise<string[]>

async function isHelpful(item: Item, { helpful }: Label, editsNear: Edits): Promise<boolean> {
  for (const { ref } of helpful) {
    const { id, number } = refOf(ref)
    const at = item.ref === undefined ? undefined : parseCompleteRef(item.ref)
    if (at?.id === id && at.number !== undefined) {
      const failed = item.kind === "fix" ? Number(item.key.slice(item.key.lastIndexOf("#") + 1)) : at.number
      if (number >= failed - NEAR && number <= at.number + NEAR) return true
    }
    if (item.ref !== undefined || item.file === undefined) continue
    if ((await editsNear(id, number)).includes(item.file)) return true
  }
  return false
}

function editsNear(store: HistoryReader): Edits {
  return async (id, number) => {
    const ref = { source: "claude_code", id }
    const row = await store.conversation(ref)
    const near = (await store.messages(ref)).filter((message) => Math.abs(message.number - number) <= NEAR_EDIT)
    return near.flatMap(({ effects }) =>
      effects.flatMap((effect) =>
        effect.type === "file" && effect.action === "edited" ? (pathBelow(row!.project!, effect.path) ?? []) : [],
      ),
    )
  }
}

/** Whether any labelled message is in a conversation of the same project that had ended by then. */
async function isKnown(store: HistoryReader, { row }: Told, { helpful }: Label): Promise<boolean> {
  for (const { ref } of helpful) {
    const earlier = await store.conversation({ source: "claude_code", id: refOf(ref).id })
    if (earlier?.project === row.project && (earlier?.ended_at ?? 0) <= (row.started_at ?? 0)) return true
  }
  return false
}

/** The labelled moment as a hook would see it, and what its session knew by then. */
function momentAt({ row, messages }: Told, { id, at, kind, input }: Label): [Moment, Session] {
  const { number } = refOf(at)
  const here = messages.findIndex((message) => message.number === number)
  if (here < 0) throw new Error(`${id}: ${at} is not in the corpus`)
  const message = messages[here]!
  const common = {
    project: row.project!,
    source: row.ref.source,
    session: row.ref.id,
    at: message.at ?? row.started_at ?? 0,
    ...(row.git_branch !== undefined && { branch: row.git_branch }),
  }
  const session = sessionBefore(messages.slice(0, here), row.project!)
  if (kind === "file") return [{ ...common, event: "before_edit", file: input.path! }, session]
  if (kind === "error") return [{ ...common, event: "failed_command", ...failureIn(messages, here, input) }, session]
  // A plan that was approved elsewhere is sent in the person's name.
  const prompt = message.parts.flatMap((part) => (part.type === "text" ? part.text : [])).join("\n")
  if (prompt === "") throw new Error(`${id}: ${at} says nothing`)
  return [
    { ...common, event: "prompt", prompt },
    { ...session, prompt },
  ]
}

function failureIn(messages: StoredMessage[], here: number, { line }: Label["input"]) {
  const results = messages[here]!.parts.filter((part) => part.type === "tool_result")
  const failed = results.find(({ text }) => text.split("\n").some((one) => sentenceHash(one) === line)) ?? results[0]
  if (!failed) throw new Error(`no tool printed ${line}`)
  const ran = messages
    .flatMap(({ effects }) => effects)
    .find((effect) => effect.type === "command" && effect.call_id === failed.call_id)
  return { error: failed.text, ...(ran?.type === "command" && { command: ran.command }) }
}

function sessionBefore(messages: StoredMessage[], project: string): Session {
  const said = messages.flatMap((message) => [...textsOf(message, "person"), ...textsOf(message, "agent")])
  const printed = messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool_result" ? part.text : [])),
  )
  const files = messages.flatMap(({ effects }) =>
    effects.flatMap((effect) =>
      effect.type === "file" && effect.action !== "mentioned" ? (pathBelow(project, effect.path) ?? []) : [],
    ),
  )
  return {
    files,
    prompt: messages
      .flatMap((message) => textsOf(message, "person"))
      .join("\n")
      .slice(0, 20_000),
    hasMentioned: (name) => said.some((text) => text.includes(name)),
    hasListed: (name) => printed.some((text) => text.includes(name)),
    seen: new Set(),
  }
}

/** The words of the person or the agent; for an agent also its calls. */
function textsOf({ parts }: StoredMessage, origin: "person" | "agent"): string[] {
  return parts.flatMap((part) => (part.origin === origin ? [part.text] : []))
}
