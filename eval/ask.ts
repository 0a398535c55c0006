import { parseArgs } from "node:util"
import { run as ask } from "../src/answers/ask.run.ts"
import { type AnswerEvidence, probabilityOf } from "../src/answers/confidence.ts"
import { evidenceOf, openLibrary } from "../src/answers/library.ts"
import { createDex } from "../src/app/dex.ts"
import { openHome } from "./home.ts"
import type { Half } from "./set.ts"
import { questions, unanswered } from "./sets/questions.ts"

// The answer without a model: is what answers the question among the quotes, and is the confidence worth its name? The same
// with a model, on the held half, where one is in the environment (DEX_LLM_PROVIDER, DEX_LLM_MODEL, DEX_LLM_API_KEY).
//   npm run eval:ask -- [--fit] [--json]

type Asked = {
  half: Half
  category: string
  isAnswered: boolean
  isRight: boolean
  isSilent: boolean
  evidence: AnswerEvidence
}

const { values } = parseArgs({ options: { fit: { type: "boolean" }, json: { type: "boolean" } } })
const set = questions("conversation")
const home = await openHome(set)
const open = (model: Record<string, string>) =>
  createDex({
    env: { HOME: home.dir, DEX_HOME: `${home.dir}/.dex`, DEX_TRACES: "off", ...model },
    cwd: home.dir,
    version: "eval",
  })
const dex = open({})
const asked: Asked[] = []
for (const { text, half, category, gold } of set.questions) asked.push(await one(text, half, category, gold))
for (const { text, half } of unanswered()) asked.push(await one(text, half, "unanswered", []))
dex.close()
await withModel()
home.close()

async function withModel(): Promise<void> {
  const model = Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      name.startsWith("DEX_LLM_") && value !== undefined ? [[name, value]] : [],
    ),
  )
  if (Object.keys(model).length === 0)
    return console.log(
      "NOT RUN with a model: none is in the environment (DEX_LLM_PROVIDER, DEX_LLM_MODEL, DEX_LLM_API_KEY)",
    )
  const held = set.questions.filter(({ half }) => half === "held")
  const opened = open(model)
  let [right, written, silent] = [0, 0, 0]
  for (const { text, gold } of held) {
    const { sources, extractive } = await ask(opened, { query: text, scope: "all", max_tokens: 600 })
    if (sources.some(({ ref }) => gold.includes(ref.replace(/^claude_code:/, "").split("#")[0]!))) right++
    if (!extractive && sources.length > 0) written++
    if (sources.length === 0) silent++
  }
  opened.close()
  console.log(
    `with a model, held: ${right} of ${held.length} cite the answering conversation; ${written} written, ${silent} not found`,
  )
}

async function one(query: string, half: Half, category: string, gold: string[]): Promise<Asked> {
  const { sources } = await ask(dex, { query, scope: "all", max_tokens: 600 })
  const { found } = await (await openLibrary(dex, { among: "all" })).search(query)
  const refs = sources.map(({ ref }) => ref.replace(/^claude_code:/, "").split("#")[0]!)
  return {
    half,
    category,
    isAnswered: gold.length > 0,
    isRight: refs.some((ref) => gold.includes(ref)),
    isSilent: sources.length === 0,
    evidence: evidenceOf(found, Date.now()),
  }
}

const share = (list: Asked[], holds: (one: Asked) => boolean) =>
  list.length === 0 ? "–" : `${((list.filter(holds).length / list.length) * 100).toFixed(1)} %`
for (const half of ["tune", "held"] as const) {
  const own = asked.filter((one) => one.half === half)
  const answered = own.filter((one) => one.isAnswered)
  const not = own.filter((one) => !one.isAnswered)
  console.log(
    `${half}: the answering conversation is among the quotes: ${share(answered, (one) => one.isRight)} of ${answered.length}`,
  )
  for (const category of [...new Set(answered.map((one) => one.category))].sort())
    console.log(
      `  ${category}: ${share(
        answered.filter((one) => one.category === category),
        (one) => one.isRight,
      )}`,
    )
  console.log(`  not found where nothing answers: ${share(not, (one) => one.isSilent)} of ${not.length}`)
  for (const [low, high] of [
    [0, 0.5],
    [0.5, 0.8],
    [0.8, 1.01],
  ] as const) {
    const band = own.filter((one) => !one.isSilent && within(probabilityOf(one.evidence), low, high))
    console.log(
      `  confidence ${low}–${Math.min(1, high)}: right ${share(band, (one) => one.isRight)} of ${band.length}`,
    )
  }
}
if (values.fit) console.log(JSON.stringify(fitted(asked.filter((one) => one.half === "tune" && !one.isSilent))))
if (values.json) console.log(JSON.stringify(asked))

function within(value: number, low: number, high: number): boolean {
  return value >= low && value < high
}

/** Logistic regression with a little shrinking, by plain gradient descent: five numbers, a few hundred cases. */
function fitted(cases: Asked[]) {
  const names = ["coverage", "gap", "agreement", "recency"] as const
  const weights = { base: 0, coverage: 0, gap: 0, agreement: 0, recency: 0 }
  for (let round = 0; round < 20_000; round++) {
    const slope = { base: 0, coverage: 0, gap: 0, agreement: 0, recency: 0 }
    for (const { evidence, isRight } of cases) {
      const error = probabilityOf(evidence, weights) - (isRight ? 1 : 0)
      slope.base += error
      for (const name of names) slope[name] += error * evidence[name]
    }
    weights.base -= (0.5 * slope.base) / cases.length
    for (const name of names) weights[name] -= 0.5 * (slope[name] / cases.length + 0.005 * weights[name])
  }
  return weights
}
