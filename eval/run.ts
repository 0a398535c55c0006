import { parseArgs } from "node:util"
import { wordWeights } from "../src/search/floor.ts"
import { parseQuery } from "../src/search/query.ts"
import { addTitleScores, rank } from "../src/search/rank.ts"
import { scopeOf } from "../src/search/scope.ts"
import type { SearchIndex } from "../src/store/index/search-index.ts"
import { openBaseline } from "./baseline.ts"
import { type EvalHome, openHome, projectPath } from "./home.ts"
import { type Interval, METRICS, mean, pairedDifference, type Scores, scoresOf } from "./metrics.ts"
import { Absent, type EvalSet, type Half, type Question } from "./set.ts"
import { beam } from "./sets/beam.ts"
import { commits } from "./sets/commits.ts"
import { cosqa } from "./sets/cosqa.ts"
import { locomo } from "./sets/locomo.ts"
import { questions } from "./sets/questions.ts"
import { measureSilence, type SilenceRow } from "./silence.ts"

// Retrieval quality, through the product's own ingest, store and search, compared with bare FTS5 in the same run.
//   npm run eval -- [--set NAME] [--half tune|held|all] [--as-if 1000000] [--json]

const SETS: Record<string, () => EvalSet> = {
  commits,
  questions: () => questions("conversation"),
  "questions-message": () => questions("message"),
  locomo: () => locomo("message"),
  "locomo-session": () => locomo("conversation"),
  beam,
  cosqa,
}

const SILENCE = "silence"

type Row = {
  set: string
  unit: string
  half: Half | "all"
  category: string
  n: number
  ours: Scores
  bare: Scores
  difference: Record<keyof Scores, Interval>
}

const { values } = parseArgs({
  options: {
    set: { type: "string", multiple: true },
    half: { type: "string", default: "all" },
    /** As if the history had this many messages: shows the cost of limiting the work on common words. */
    "as-if": { type: "string" },
    json: { type: "boolean", default: false },
  },
})
const say = (text: string) => process.stderr.write(`${text}\n`)
const rows: Row[] = []
const silence: SilenceRow[] = []
for (const name of values.set ?? [...Object.keys(SETS), SILENCE]) {
  const load = SETS[name]
  if (!load && name !== SILENCE)
    throw new Error(`There is no set ${name}. There are ${[...Object.keys(SETS), SILENCE].join(", ")}.`)
  try {
    if (load) rows.push(...(await measure(load())))
    else silence.push(...(await measureSilence()))
  } catch (error) {
    if (!(error instanceof Absent)) throw error
    say(`NOT RUN: ${name}: ${error.message}`)
  }
}
if (values.json) console.log(JSON.stringify({ sets: rows, silence }, undefined, 2))
else console.log([rows.length > 0 ? table(rows) : "", ...silence.map(silenceLine)].join("\n"))

async function measure(set: EvalSet): Promise<Row[]> {
  const started = performance.now()
  const home = await openHome(set)
  const baseline = await openBaseline(set, home)
  const asked = set.questions.filter((question) => values.half === "all" || question.half === values.half)
  const answers: { question: Question; ours: Scores; bare: Scores }[] = []
  for (const question of asked) {
    const gold = new Set(question.gold)
    const ours = scoresOf(await ranked(home, set, question), gold)
    answers.push({ question, ours, bare: scoresOf(baseline.rank(question), gold) })
  }
  baseline.close()
  home.close()
  say(`${set.name}: ${asked.length} questions in ${((performance.now() - started) / 1000).toFixed(1)} s`)
  const counted = answers.filter((answer) => !set.apart?.includes(answer.question.category))
  const categories = [...new Set(answers.map((answer) => answer.question.category))].sort()
  return [
    ...(["tune", "held"] as const).map((half) =>
      toRow(
        set,
        half,
        "whole",
        counted.filter((answer) => answer.question.half === half),
      ),
    ),
    toRow(set, "all", "whole", counted),
    ...categories.map((category) =>
      toRow(
        set,
        "all",
        category,
        answers.filter((answer) => answer.question.category === category),
      ),
    ),
  ].filter((row) => row.n > 0)
}

async function ranked(home: EvalHome, set: EvalSet, question: Question): Promise<string[]> {
  const { project } = question
  const scope = await scopeOf(home.store, project === undefined ? {} : { project: projectPath(project) })
  const query = parseQuery(question.text)
  const index = await asIf(home.index)
  const { messages, conversations } = await rank(index, query, scope!.filters)
  if (set.unit === "message")
    return messages.filter((hit) => hit.number > 0).map((hit) => home.docOf(hit.ref.id, hit.number))
  const titled = await addTitleScores(home.store, conversations, query, await wordWeights(index, query))
  return titled.map((hit) => home.chatOf(hit.ref.id))
}

/** The same index with a larger reported size: the planner limits its work as it would there. */
async function asIf(index: SearchIndex): Promise<SearchIndex> {
  const wanted = values["as-if"] === undefined ? undefined : Number(values["as-if"])
  if (wanted === undefined) return index
  const scale = wanted / Math.max(1, (await index.sizes([])).messages)
  return {
    ...index,
    sizes: async (terms) => ({ ...(await index.sizes(terms)), messages: wanted }),
    find: (query) =>
      index.find({ ...query, ...(query.newest !== undefined && { newest: Math.ceil(query.newest / scale) }) }),
  }
}

function toRow(set: EvalSet, half: Half | "all", category: string, answers: { ours: Scores; bare: Scores }[]): Row {
  const of = (who: "ours" | "bare", metric: keyof Scores) => answers.map((answer) => answer[who][metric])
  const all = <T>(make: (metric: keyof Scores) => T) =>
    Object.fromEntries(METRICS.map((metric) => [metric, make(metric)])) as Record<keyof Scores, T>
  return {
    set: set.name,
    unit: set.unit,
    half,
    category,
    n: answers.length,
    ours: all((metric) => mean(of("ours", metric))),
    bare: all((metric) => mean(of("bare", metric))),
    difference: all((metric) => pairedDifference(of("ours", metric), of("bare", metric))),
  }
}

function table(rows: Row[]): string {
  const shown = ["any1", "any5", "any10", "all10", "recall5", "recall10", "ndcg10", "mrr"] as const
  const percent = (value: number) => (value * 100).toFixed(1)
  const lines = [
    `| set | unit | half | category | n | ${shown.join(" | ")} | nDCG@10 − bare FTS5 (95 %) |`,
    `|---|---|---|---|---|${shown.map(() => "---").join("|")}|---|`,
  ]
  for (const row of rows) {
    const cells = shown.map((metric) => `${percent(row.ours[metric])} (${percent(row.bare[metric])})`)
    const { mean, low, high } = row.difference.ndcg10
    lines.push(
      `| ${row.set} | ${row.unit} | ${row.half} | ${row.category} | ${row.n} | ${cells.join(" | ")} | ${percent(mean)} [${percent(low)}, ${percent(high)}] |`,
    )
  }
  return lines.join("\n")
}

function silenceLine({ half, falseSilence, silence, curve, auc, n }: SilenceRow): string {
  const percent = (value: number) => `${(value * 100).toFixed(0)} %`
  const points = curve.map((point) => `${percent(point.falseSilence)} → ${percent(point.silence)}`)
  return `silence, ${half} (${n.answered} answered, ${n.without} not): as it is ${percent(falseSilence)} → ${percent(silence)}; ${points.join(", ")}; AUC ${auc.toFixed(3)}`
}
