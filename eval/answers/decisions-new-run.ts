import { parseArgs } from "node:util"
import { Absent } from "../set.ts"
import { measureNewDecisions } from "./decisions-new.ts"

//   npm run eval:decisions-new -- [--show | --json]     --show prints what was wrong and missed in the half for building

const { values } = parseArgs({ options: { show: { type: "boolean" }, json: { type: "boolean" } } })

try {
  const { build, held, unread, results } = await measureNewDecisions()
  if (values.json) console.log(JSON.stringify({ build, held, unread }))
  else {
    console.table({ build, held })
    console.log(`${unread} conversations are of agents that dex cannot read, or of samples that are not one file`)
  }
  if (values.show)
    for (const { verdict, id, text } of results.filter(({ half }) => half === "build"))
      console.log(`${verdict.padEnd(6)} ${id} ${text.replaceAll(/\s+/g, " ").slice(0, 240)}`)
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.log(`NOT RUN: ${error.message}`)
}
