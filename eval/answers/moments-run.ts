import { parseArgs } from "node:util"
import { Absent } from "../set.ts"
import { measureMoments } from "./moments.ts"

//   npm run eval:moments -- [--show | --json]     --show prints what was pushed in the half for building, and only there

const { values } = parseArgs({ options: { show: { type: "boolean" }, json: { type: "boolean" } } })

try {
  const { build, held, results } = await measureMoments()
  if (values.json) console.log(JSON.stringify({ build, held }))
  else console.table({ build, held })
  if (values.show)
    for (const { label, items, helpful, known, helped } of results.filter(({ label }) => label.half === "build")) {
      console.log(
        `${label.id} ${label.kind} ${label.at} help: ${label.helpful.length}${known ? " known" : ""}${helped ? " HELPED" : ""}`,
      )
      for (const [i, { kind, title, summary, ref, relevance }] of items.entries())
        console.log(
          `  ${helpful[i] ? "+" : "-"} ${relevance.toFixed(2)} ${kind} ${title} | ${summary.slice(0, 120)} | ${ref ?? ""}`,
        )
    }
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.log(`NOT RUN: ${error.message}`)
}
