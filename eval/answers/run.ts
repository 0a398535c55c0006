import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { Absent } from "../set.ts"
import { askAll, askFigures } from "./ask.ts"
import { builtDex } from "./command.ts"
import { labelledQuestions } from "./labels.ts"
import { genuineProject } from "./project.ts"

// What is shown to who asks, against labels made by reading: beside version 0.1.0 on the same sets.
//   npm run eval:answers -- [--dex FOLDER] [--json] [--show]     --dex measures another built dex, --show prints what was answered (build half)

type Share = { of: number; count: number }
type Figures = Record<string, Record<string, Share | number>>

const { values } = parseArgs({
  options: { dex: { type: "string" }, json: { type: "boolean" }, show: { type: "boolean" } },
})
const root = values.dex ?? fileURLToPath(new URL("../../", import.meta.url))

try {
  const project = genuineProject()
  const dex = builtDex(root, values.dex === undefined ? "today" : "other", project)
  const asked = await askAll(dex, await labelledQuestions(project))
  const figures: Figures = {}
  for (const half of ["build", "held"] as const) figures[`ask, ${half}`] = askFigures(asked, half)
  if (values.json) console.log(JSON.stringify(figures, null, 2))
  else print(figures, JSON.parse(readFileSync(new URL("version-0.1.0.json", import.meta.url), "utf8")) as Figures)
  if (values.show)
    for (const one of asked.filter(({ half }) => half === "build"))
      console.log(
        `\n${one.id} ${one.isAnswerable ? (one.isRight ? "RIGHT" : one.isNotFound ? "NOT FOUND" : "WRONG") : one.isNotFound ? "SILENT" : "SHOULD BE SILENT"} ${one.confidence} ${one.probability}\n${one.answer}`,
      )
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.log(`NOT RUN: ${error.message}`)
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
