import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { CONVERSATION_KINDS } from "../../src/core/conversation.ts"
import { formatRef } from "../../src/core/ref.ts"
import type { EmbedSettings } from "../../src/embed/embedder.ts"
import { openEmbedder } from "../../src/embed/open-embedder.ts"
import { embedMessages } from "../../src/ingest/embed-messages.ts"
import { wordWeights } from "../../src/search/floor.ts"
import { addVectorResults } from "../../src/search/hybrid.ts"
import { parseQuery } from "../../src/search/query.ts"
import { addTitleScores, type Ranking, rank } from "../../src/search/rank.ts"
import { type Scope, scopeOf } from "../../src/search/scope.ts"
import { coverageOfBest } from "../../src/search/search.ts"
import type { ConversationRow, HistoryReader } from "../../src/store/history/store.ts"
import { openHome, projectPath } from "../home.ts"
import { serveLocal } from "../local/serve.ts"
import { mean, pairedDifference, type Scores, scoresOf } from "../metrics.ts"
import { Absent, type EvalSet, type Question } from "../set.ts"
import { beam } from "../sets/beam.ts"
import { commits } from "../sets/commits.ts"
import { cosqa } from "../sets/cosqa.ts"
import { far } from "../sets/far.ts"
import { hard } from "../sets/hard.ts"
import { locomo } from "../sets/locomo.ts"
import { questions } from "../sets/questions.ts"
import { serveTable } from "./serve.ts"

// Words and vectors together compared with words alone, in the same run, for a word table, the local model or any /v1/embeddings
// server. FOLDER: where dexctx-embed-local is installed, such as ~/.dex/embed-local.
//   node scripts/run.mjs eval/static/measure.ts (--table FILE | --local FOLDER | --url URL --model NAME) [--set NAME] [--half tune|held]

/** Each set, and the set whose home it uses: the same transcripts are read and embedded once. */
const SETS: Record<string, { load: () => EvalSet; home: string }> = {
  "questions-message": { load: () => questions("message"), home: "questions" },
  questions: { load: () => questions("conversation"), home: "questions" },
  far: { load: far, home: "questions" },
  hard: { load: hard, home: "questions" },
  commits: { load: commits, home: "commits" },
  "commits-own": { load: () => ({ ...commits(), name: "commits-own" }), home: "commits" },
  cosqa: { load: cosqa, home: "cosqa" },
  beam: { load: beam, home: "beam" },
  locomo: { load: () => locomo("message"), home: "locomo" },
  "locomo-session": { load: () => locomo("conversation"), home: "locomo" },
}

/** Smaller categories alone mean nothing. */
const LEAST_IN_CATEGORY = 30

type Answer = { question: Question; lexical: Scores; vector: Scores; hybrid: Scores }

const { values } = parseArgs({
  options: {
    table: { type: "string" },
    local: { type: "string" },
    url: { type: "string" },
    model: { type: "string" },
    set: { type: "string", multiple: true },
    half: { type: "string", default: "all" },
  },
})
const server =
  values.table !== undefined
    ? await serveTable(values.table)
    : values.local !== undefined
      ? await serveLocal(values.local)
      : undefined
const url = server?.url ?? values.url
const model = server?.model ?? values.model
if (!url || !model) throw new Error("Which vectors? --table FILE, --local FOLDER, or --url URL --model NAME")
const settings: EmbedSettings = { provider: "openai", url, model }

console.log(
  "| set | half | category | n | any@1 | any@5 | R@10 | nDCG@10 | vectors alone | hybrid − lexical, nDCG@10 (95 %) |",
)
console.log("|---|---|---|---|---|---|---|---|---|---|")
for (const name of values.set ?? Object.keys(SETS)) {
  const known = SETS[name]
  if (!known) throw new Error(`There is no set ${name}. There are ${Object.keys(SETS).join(", ")}.`)
  try {
    const set = known.load()
    for (const line of linesOf(set, await measure(set, known.home))) console.log(line)
  } catch (error) {
    if (!(error instanceof Absent)) throw error
    process.stderr.write(`NOT RUN: ${name}: ${error.message}\n`)
  }
}
server?.close()

async function measure(set: EvalSet, homeName: string): Promise<Answer[]> {
  const started = performance.now()
  const home = await openHome({ ...set, name: homeName })
  const { store, index } = home
  const lockDir = mkdtempSync(join(tmpdir(), "dex-embed-"))
  const report = await embedMessages({ store, index, home: { dir: lockDir } }, { settings: () => settings })
  rmSync(lockDir, { recursive: true })
  if (!report || report.left > 0) throw new Error(`Not all was embedded: ${JSON.stringify(report)}`)
  const embedder = (await openEmbedder(settings, [report.embedder]))!
  const vectors = await index.vectors()
  const answers: Answer[] = []
  for (const question of set.questions) {
    if (values.half !== "all" && question.half !== values.half) continue
    const { project } = question
    const scope = (await scopeOf(store, project === undefined ? {} : { project: projectPath(project) }))!
    if (set.name === "commits-own" && !(await narrowToOwn(store, question, scope))) continue
    const query = parseQuery(question.text)
    const lexical = await rank(index, query, scope.filters)
    const weights = await wordWeights(index, query)
    const meaning = { settings: () => settings, timeoutMs: 60_000, text: query.text }
    const { fused, degraded } = await addVectorResults(index, lexical, scope.filters, meaning, () =>
      coverageOfBest(store, index, lexical, query),
    )
    if (!fused) throw new Error(degraded.join(" "))
    const [vector] = await embedder.embed([query.text], { role: "query" })
    const near = vectors.scan(report.embedder, vector!, { limit: 100, filter: scope.filters })
    const nearOnes = {
      messages: near,
      conversations: [...new Map(near.toReversed().map((hit) => [formatRef(hit.ref), hit])).values()].sort(
        (a, b) => b.score - a.score,
      ),
    }
    const scores = (found: { messages: Found[]; conversations: Found[] }) =>
      scoresOf(
        set.unit === "message"
          ? found.messages.filter((hit) => hit.number! > 0).map((hit) => home.docOf(hit.ref.id, hit.number!))
          : found.conversations.map((hit) => home.chatOf(hit.ref.id)),
        new Set(question.gold),
      )
    const titled = async <R extends Ranking>(ranking: R) => ({
      ...ranking,
      conversations: await addTitleScores(store, ranking.conversations, query, weights),
    })
    const [byWords, both] = [await titled(lexical), await titled(fused)]
    answers.push({ question, lexical: scores(byWords), vector: scores(nearOnes), hybrid: scores(both) })
  }
  home.close()
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  process.stderr.write(`${set.name}: ${report.embedded} embedded in ${report.duration_ms} ms, ${seconds} s in all\n`)
  return answers
}

/** Leaves only what the person had begun before the commit. Returns false if the conversations of the commit are not among them. */
async function narrowToOwn(store: HistoryReader, question: Question, { filters }: Scope): Promise<boolean> {
  const committedAt = Date.parse(question.date!)
  const { rows } = await store.list({ limit: 10_000, offset: 0, kinds: [...CONVERSATION_KINDS] })
  const personOf = (path = "") => path.split("/").slice(0, 3).join("/")
  const gold = rows.filter(({ ref }) => question.gold.includes(ref.id))
  const person = personOf(gold[0]?.project)
  const isOwn = ({ project, started_at }: ConversationRow) =>
    personOf(project) === person && started_at !== undefined && started_at <= committedAt
  filters.excludedConversations = rows.filter((row) => !isOwn(row)).map(({ ref }) => ref)
  return gold.some(isOwn)
}

type Found = { ref: { id: string }; number?: number }

function linesOf(set: EvalSet, answers: Answer[]): string[] {
  const counted = answers.filter(({ question }) => !set.apart?.includes(question.category))
  const half = (name: string) => counted.filter(({ question }) => question.half === name)
  const groups: [string, string, Answer[]][] = [
    ["tune", "whole", half("tune")],
    ["held", "whole", half("held")],
    ["all", "whole", values.half === "all" ? counted : []],
    ...[...Map.groupBy(answers, ({ question }) => question.category)].map(
      ([category, some]): [string, string, Answer[]] => [values.half!, category, some],
    ),
  ]
  return groups
    .filter(([, category, some]) => some.length >= (category === "whole" ? 1 : LEAST_IN_CATEGORY))
    .map(([half, category, some]) => {
      const of = (who: "lexical" | "vector" | "hybrid", metric: keyof Scores) => some.map((one) => one[who][metric])
      const percent = (value: number) => (100 * value).toFixed(1)
      const both = (metric: keyof Scores) =>
        `${percent(mean(of("hybrid", metric)))} (${percent(mean(of("lexical", metric)))})`
      const { mean: by, low, high } = pairedDifference(of("hybrid", "ndcg10"), of("lexical", "ndcg10"))
      const cells = [
        set.name,
        half,
        category,
        some.length,
        both("any1"),
        both("any5"),
        both("recall10"),
        both("ndcg10"),
      ]
      const alone = percent(mean(of("vector", "ndcg10")))
      return `| ${cells.join(" | ")} | ${alone} | ${percent(by)} [${percent(low)}, ${percent(high)}] |`
    })
}
