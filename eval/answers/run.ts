import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { Absent } from "../set.ts"
import { type Asked, allQuestions, askAll, askFigures } from "./ask.ts"
import { builtDex } from "./command.ts"
import { fitted } from "./fit.ts"
import { hardFigures, hardQuestions, printHard, RECORDINGS } from "./hard.ts"
import { labelledQuestions } from "./labels.ts"
import { genuineProject, type Project } from "./project.ts"
import { sentenceFigures } from "./sentences.ts"

// What users see, compared with labels made by reading, and with version 0.1.0 on the same sets.
//   npm run eval:answers -- [--set hard [--held]] [--dex FOLDER] [--json] [--show] [--fit]
// --dex measures another built dex, --show prints the answers (build half), --fit the weights fitted on the build half
// --set hard measures the build half of the hard set. --held measures the other one, which may be looked at three times: note each
// look in docs/ask.md.

type Share = { of: number; count: number }
type Figures = Record<string, Record<string, Share | number>>

const { values } = parseArgs({
  options: {
    set: { type: "string" },
    held: { type: "boolean" },
    dex: { type: "string" },
    json: { type: "boolean" },
    show: { type: "boolean" },
    fit: { type: "boolean" },
  },
})
if (values.set !== undefined && values.set !== "hard") throw new Error(`There is no set ${values.set}, only "hard".`)
if (values.held && values.set === undefined) throw new Error("--held needs --set hard.")
const root = values.dex ?? fileURLToPath(new URL("../../", import.meta.url))

try {
  const project = genuineProject()
  const name = values.dex === undefined ? "today" : "other"
  if (values.set === "hard") {
    await measureHard(project, name)
    process.exit(0)
  }
  const dex = builtDex(root, name, project)
  const questions = allQuestions(await labelledQuestions(project))
  if (values.fit) {
    console.log(JSON.stringify(await fitted(project, questions), null, 2))
    process.exit(0)
  }
  const asked = await askAll(dex, questions)
  const figures: Figures = {}
  for (const half of ["build", "held"] as const) figures[`ask, ${half}`] = askFigures(asked, half)
  // The check of citations is a function of this tree.
  if (values.dex === undefined) figures["what a model writes"] = await sentenceFigures(project)
  if (values.json) console.log(JSON.stringify(figures, null, 2))
  else print(figures, JSON.parse(readFileSync(new URL("version-0.1.0.json", import.meta.url), "utf8")) as Figures)
  if (values.show) show(asked)
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.log(`NOT RUN: ${error.message}`)
}

async function measureHard(project: Project, name: string): Promise<void> {
  const half = values.held ? "held" : "build"
  const questions = (await hardQuestions(project)).filter((one) => one.half === half)
  const asked = await askAll(builtDex(root, `hard-${name}`, project, RECORDINGS), questions)
  const figures = hardFigures(questions, asked, half)
  if (values.json) console.log(JSON.stringify(figures, null, 2))
  else printHard(half, figures)
  if (values.show) show(asked)
}

function show(asked: Asked[]): void {
  for (const one of asked.filter(({ half }) => half === "build"))
    console.log(
      `\n${one.id} ${one.isAnswerable ? (one.isRight ? "RIGHT" : one.isNotFound ? "NOT FOUND" : "WRONG") : one.isNotFound ? "SILENT" : "SHOULD BE SILENT"} ${one.confidence} ${one.probability}\n${one.answer}`,
    )
}

function print(figures: Figures, before: Figures): void {
  for (const [set, rows] of Object.entries(figures)) {
    console.log(`\n${set.padEnd(56)} today              0.1.0`)
    for (const [name, value] of Object.entries(rows))
      console.log(`  ${name.padEnd(54)} ${told(value).padEnd(18)} ${told(before[set]?.[name])}`)
  }
}

function told(value: Share | number | undefined): string {
  if (value === undefined) return "-"
  if (typeof value === "number") return value.toFixed(1)
  return value.of === 0 ? "-" : `${((100 * value.count) / value.of).toFixed(1)} % (${value.count}/${value.of})`
}
