import { parseArgs } from "node:util"
import { Absent } from "../set.ts"
import { measureMoments, measurePrompts } from "./moments.ts"
import { promptFigures } from "./prompts.ts"

//   npm run eval:moments -- [--show | --json]     --show prints what was pushed in the half for building, and only there

const { values } = parseArgs({ options: { show: { type: "boolean" }, json: { type: "boolean" } } })

try {
  const { build, held, results } = await measureMoments()
  const { prompts, results: promptResults } = await measurePrompts()
  const drawn = {
    build: promptFigures(prompts.filter(({ half }) => half === "build")),
    held: promptFigures(prompts.filter(({ half }) => half === "held")),
  }
  if (values.json) console.log(JSON.stringify({ build, held, prompts: drawn }))
  else {
    console.table({ build, held })
    console.log("prompts drawn from all prompts of the later half")
    for (const [half, figures] of Object.entries(drawn)) {
      console.log(half)
      for (const [name, figure] of Object.entries(figures)) console.log(`  ${name.padEnd(40)}${figure}`)
    }
  }
  if (values.show)
    for (const { label, items, helpful, known, helped } of [...results, ...promptResults].filter(
      ({ label }) => label.half === "build",
    )) {
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
