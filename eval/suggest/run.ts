import { parseArgs } from "node:util"
import { KINDS } from "../../src/core/suggestion.ts"
import { RELEVANCE_FLOOR, RELEVANCE_WEIGHTS, type RelevanceWeights, relevanceOf } from "../../src/suggest/relevance.ts"
import { openHome } from "../home.ts"
import { Absent } from "../set.ts"
import { genuineCorpus } from "../sets/corpus.ts"
import { fitLogistic } from "./fit.ts"
import { type FixLabels, fixLabels, fixLines, fixOffers, fixRows, keyOf } from "./fixes.ts"
import { replayKept } from "./kept.ts"
import { type Offer, replay } from "./replay.ts"

// What would have been suggested in genuine conversations, from what was known before each began, and was it used?
//   npm run eval:suggest -- [--fit | --kept] [--json]     --fit prints the weights fitted on the earlier half

const { values } = parseArgs({
  options: { fit: { type: "boolean" }, kept: { type: "boolean" }, json: { type: "boolean" } },
})
/** Few labels should change a weight only a little. */
const PENALTY = 5
/** With fewer, nothing is learned. */
const LEAST_USED = 5
/**
 * Features for recency fall with age, and features that count conversations grow with the evidence, so their weights must not be
 * negative.
 */
const NEVER_NEGATIVE = /(?:^|_)within_|^(?:together|touched_together|together_count|branch|visits)$/

if (values.kept) {
  process.stdout.write(`${replayKept()}\n`)
  process.exit(0)
}
try {
  const transcripts = genuineCorpus()
  const home = await openHome({ name: "genuine", chats: { transcripts }, questions: [] } as never)
  const { offers, moments, conversations } = await replay(home.store, home.dir)
  const labels = fixLabels()
  const fixes = fixRows(await fixOffers(home.store, home.dir), labels)
  home.close()
  const judged = withHandLabels(offers, labels)
  const fitted = values.fit ? weightsFrom(judged.filter(({ is_held }) => !is_held)) : RELEVANCE_WEIGHTS
  if (values.fit) process.stdout.write(`${JSON.stringify(fitted, null, 2)}\n`)
  const work = judged.filter(({ event }) => event !== "session_start")
  const start = judged.filter(({ event }) => event === "session_start")
  const rows = [
    ...(["early", "held"] as const).flatMap((half) => {
      const own = work.filter(({ is_held }) => is_held === (half === "held"))
      const all = pushed(own, fitted, RELEVANCE_FLOOR)
      return [
        row(half, "all kinds", all, moments[half]),
        ...KINDS.flatMap((kind) => {
          const of = all.filter((offer) => offer.kind === kind)
          return of.length === 0 ? [] : [row(half, kind, of, moments[half])]
        }),
        row(half, "the most co-edited file, always", mostCoEdited(own), moments[half]),
        row(
          half,
          "at the start of a session",
          pushed(
            start.filter(({ is_held }) => is_held === (half === "held")),
            fitted,
            RELEVANCE_FLOOR,
          ),
          0,
        ),
      ]
    }),
  ]
  if (values.json) process.stdout.write(`${JSON.stringify({ conversations, moments, rows, fixes })}\n`)
  else {
    print(rows, conversations, moments)
    process.stdout.write(`\n${fixLines(fixes).join("\n")}\n`)
  }
} catch (error) {
  if (!(error instanceof Absent)) throw error
  process.stdout.write(`NOT RUN: ${error.message}\n`)
}

type Row = ReturnType<typeof row>

function row(half: string, what: string, offers: Offer[], moments: number) {
  const used = offers.filter((offer) => offer.used).length
  const at = new Set(offers.map(({ conversation, moment }) => `${conversation} ${moment}`)).size
  return { half, what, pushed: offers.length, used, share: offers.length === 0 ? 0 : used / offers.length, at, moments }
}

/** As a session gets them: the most likely first, at most five at a moment, nothing twice. */
function pushed(offers: Offer[], weights: RelevanceWeights, floor: number): Offer[] {
  const moments = Map.groupBy(offers, ({ conversation, moment }) => `${conversation} ${moment}`)
  const said = new Set<string>()
  const all: Offer[] = []
  for (const at of moments.values()) {
    const likely = at
      .map((offer) => ({ offer, relevance: relevanceOf(offer.kind, offer.features, weights) }))
      .filter(({ offer, relevance }) => relevance >= floor && !said.has(`${offer.conversation} ${offer.key}`))
      .sort((a, b) => b.relevance - a.relevance)
      .slice(0, 5)
    for (const { offer } of likely) said.add(`${offer.conversation} ${offer.key}`)
    all.push(...likely.map(({ offer }) => offer))
  }
  return all
}

function mostCoEdited(offers: Offer[]): Offer[] {
  const moments = Map.groupBy(
    offers.filter(({ kind, features }) => kind === "related_code" && features.together_count! > 0),
    ({ conversation, moment }) => `${conversation} ${moment}`,
  )
  const said = new Set<string>()
  return [...moments.values()].flatMap((at) => {
    const [best] = at
      .filter((offer) => !said.has(`${offer.conversation} ${offer.key}`))
      .sort((a, b) => b.features.together_count! - a.features.together_count!)
    if (!best) return []
    said.add(`${best.conversation} ${best.key}`)
    return [best]
  })
}

/** A thing that could be suggested at ten moments of a conversation counts once. */
function weightsFrom(offers: Offer[]): RelevanceWeights {
  const weights: RelevanceWeights = {}
  for (const kind of KINDS) {
    const own = offers.filter((offer) => offer.kind === kind)
    if (own.filter(({ used }) => used).length < LEAST_USED) continue
    const times = new Map<string, number>()
    for (const { conversation, key } of own)
      times.set(`${conversation} ${key}`, (times.get(`${conversation} ${key}`) ?? 0) + 1)
    const names = [...new Set(own.flatMap(({ features }) => Object.keys(features)))]
    weights[kind] = withoutNegative(names, (used) =>
      fitLogistic(
        own.map((offer) => ({
          features: Object.fromEntries(used.map((name) => [name, offer.features[name] ?? 0])),
          used: offer.used,
          weight: 1 / times.get(`${offer.conversation} ${offer.key}`)!,
        })),
        PENALTY,
      ),
    )
  }
  return weights
}

/**
 * The data spans six weeks: a weight that makes older things more likely would only reflect what is not known about older ones.
 * And evidence from more conversations must not rank below evidence from fewer.
 */
function withoutNegative(names: string[], fitted: (names: string[]) => Record<string, number>): Record<string, number> {
  const weights = fitted(names)
  const kept = names.filter((name) => !NEVER_NEGATIVE.test(name) || (weights[name] ?? 0) >= 0)
  return kept.length === names.length ? weights : withoutNegative(kept, fitted)
}

/** Whether a fix is the right one was read by hand: names alone do not tell. */
function withHandLabels(offers: Offer[], { offers: labels }: FixLabels): Offer[] {
  const labelOf = new Map(labels.map((label) => [keyOf(label), label.label]))
  return offers.map((offer) => {
    const { conversation, number } = offer
    const label = labelOf.get(keyOf({ conversation, number, offer: offer.key.replace(/^fix:\w+:/, ""), here: true }))
    return label === undefined ? offer : { ...offer, used: label === "right" }
  })
}

function print(rows: Row[], conversations: number, moments: { early: number; held: number }): void {
  const lines = [
    `${conversations} conversations, ${moments.early} edits and failed commands in the earlier half (fitted on), ${moments.held} in the later (held out)`,
    "",
    "half   what                              pushed  used  share  95 %         silent",
    ...rows.map(({ half, what, pushed, used, share, at, moments }) => {
      const [low, high] = wilson(used, pushed)
      const silent = moments === 0 ? "" : `${((1 - at / moments) * 100).toFixed(1)} %`
      return `${half.padEnd(6)} ${what.padEnd(33)} ${String(pushed).padStart(6)} ${String(used).padStart(5)} ${percent(share)} ${percent(low)}–${percent(high).trim().padEnd(5)} ${silent.padStart(7)}`
    }),
  ]
  process.stdout.write(`${lines.join("\n")}\n`)
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`.padStart(6)
}

function wilson(used: number, of: number): [number, number] {
  if (of === 0) return [0, 1]
  const z = 1.96
  const p = used / of
  const middle = p + (z * z) / (2 * of)
  const spread = z * Math.sqrt((p * (1 - p)) / of + (z * z) / (4 * of * of))
  return [(middle - spread) / (1 + (z * z) / of), (middle + spread) / (1 + (z * z) / of)]
}
