import { readFileSync } from "node:fs"
import { type Decision, decisionsIn } from "../../src/learn/decisions/decisions.ts"
import type { StoredMessage } from "../../src/store/history/store.ts"
import { isSameQuote } from "../decisions/same.ts"
import { plain, sentenceHash, sentencesOf } from "../decisions/sentences.ts"
import { halfOf } from "../set.ts"
import { openDecisionsHome, type Place } from "./decisions-home.ts"

// Decisions found in conversations on which no rule was fitted, compared with those labelled by reading.
//
// A conversation is completely in one half, by the hash of its name. A decision without a label is wrong, as is everything in a
// conversation without decisions. Sentences that readers could see either way (`doubt`) count neither as right nor as wrong, and
// are not missed. Sentences of one `group` state one decision.

type Label = Place & {
  id: string
  hash?: string
  decision?: boolean
  alone?: boolean
  doubt?: boolean
  kind?: string
  group?: string
}

export type DecisionFigures = {
  conversations: number
  found: number
  right: number
  labelled: number
  recalled: number
  /**
   * Found decisions for which a reader noted whether the sentence alone states the decision; and how many do, or are shown with
   * more context.
   */
  judged: number
  alone: number
}

/** For people who read the failures in the half for building. */
export type DecisionResult = {
  half: "build" | "held"
  verdict: "right" | "wrong" | "missed" | "doubt"
  id: string
  text: string
}

type Located = Label & { texts: string[] }

export async function measureNewDecisions(): Promise<{
  build: DecisionFigures
  held: DecisionFigures
  /** Conversations of agents that dex cannot read, or of samples that are not one file. */
  unread: number
  results: DecisionResult[]
}> {
  const lines = readFileSync(new URL("decisions.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n")
  const labels = lines.map((line) => JSON.parse(line) as Label)
  const chats = [...Map.groupBy(labels, ({ repo, file, conversation }) => `${repo} ${file} ${conversation}`).values()]
  const home = await openDecisionsHome(chats.map(([first]) => first!))
  const { rows } = await home.store.list({ limit: 100_000, offset: 0, kinds: ["person", "subagent", "automation"] })
  const figures = { build: noFigures(), held: noFigures() }
  const results: DecisionResult[] = []
  let unread = 0
  for (const own of chats) {
    const id = home.idOf(own[0]!)
    if (id === undefined) {
      unread++
      continue
    }
    const row = rows.find(({ ref }) => ref.id === id)!
    const messages = await home.store.messages(row.ref)
    const half = halfOf(own[0]!.conversation) === "held" ? "held" : "build"
    results.push(...measureOne(figures[half], half, located(own, messages), decisionsIn(row, messages), messages))
  }
  home.close()
  return { ...figures, unread, results }
}

function noFigures(): DecisionFigures {
  return { conversations: 0, found: 0, right: 0, labelled: 0, recalled: 0, judged: 0, alone: 0 }
}

/** The labelled sentences, located in the conversation. */
function located(labels: Label[], messages: StoredMessage[]): Located[] {
  const texts = Map.groupBy(messages.flatMap(sentencesOf), sentenceHash)
  return labels.flatMap((label) => (label.hash === undefined ? [] : [{ ...label, texts: texts.get(label.hash) ?? [] }]))
}

function measureOne(
  sum: DecisionFigures,
  half: "build" | "held",
  labels: Located[],
  found: Decision[],
  messages: StoredMessage[],
): DecisionResult[] {
  const results: DecisionResult[] = []
  const met = new Set<string>()
  sum.conversations++
  for (const one of found) {
    const message = messages.find(({ number }) => number === one.number)!
    const of = labels.filter(({ kind, texts }) => isSameQuote({ quote: one.quote, message }, kind, texts))
    const right = of.filter(({ decision, doubt }) => decision && !doubt)
    for (const label of right) met.add(groupOf(label))
    const isDoubtful = right.length === 0 && of.some(({ doubt }) => doubt)
    const verdict = right.length > 0 ? "right" : isDoubtful ? "doubt" : "wrong"
    results.push({ half, verdict, id: of.map(({ id }) => id).join(" "), text: one.quote })
    if (isDoubtful) continue
    sum.found++
    if (right.length > 0) sum.right++
    if (of.length === 0) continue
    sum.judged++
    if (of.some(({ alone }) => alone) || comesWithMore(one, of)) sum.alone++
  }
  const wanted = Map.groupBy(
    labels.filter(({ decision, doubt }) => decision && !doubt),
    groupOf,
  )
  sum.labelled += wanted.size
  sum.recalled += [...wanted.keys()].filter((group) => met.has(group)).length
  for (const [group, of] of wanted)
    if (!met.has(group))
      results.push({ half, verdict: "missed", id: of[0]!.id, text: of[0]!.texts[0] ?? "(not located)" })
  return results
}

function groupOf({ id, group }: Label): string {
  return group === undefined ? id : `group ${group}`
}

/** With the question that it answers, or with the sentence before it. */
function comesWithMore({ quote }: Decision, labels: Located[]): boolean {
  const shortest = Math.min(...labels.flatMap(({ texts }) => texts.map((text) => text.length)))
  return quote.includes(" → ") || plain(quote).length > shortest + LEAST_MORE
}

const LEAST_MORE = 20
