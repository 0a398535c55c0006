import { createHash } from "node:crypto"
import { parseArgs } from "node:util"
import { formatRef } from "../../src/core/ref.ts"
import { decisionsIn } from "../../src/learn/decisions/decisions.ts"
import { openGenuineHome } from "../genuine-home.ts"
import { Absent } from "../set.ts"
import { plain } from "./sentences.ts"

// A random sample of decisions from the genuine conversations, for a person to read: does each alone state what was decided?
//   npm run eval:draw -- [--seed 1] [--count 60]

const { values } = parseArgs({
  options: { seed: { type: "string", default: "1" }, count: { type: "string", default: "60" } },
})

try {
  const home = await openGenuineHome()
  const { rows } = await home.store.list({ limit: 100_000, offset: 0, kinds: ["person"] })
  const all: { ref: string; kind: string; quote: string }[] = []
  for (const row of rows)
    for (const { kind, number, quote } of decisionsIn(row, await home.store.messages(row.ref)))
      all.push({ kind, quote: plain(quote), ref: formatRef({ ...row.ref, number }) })
  home.close()
  const drawn = (ref: string) => createHash("sha256").update(`${values.seed} ${ref}`).digest("hex")
  all.sort((a, b) => drawn(`${a.ref} ${a.quote}`).localeCompare(drawn(`${b.ref} ${b.quote}`)))
  console.log(`${all.length} decisions`)
  for (const { kind, quote, ref } of all.slice(0, Number(values.count))) console.log(`${kind} ${ref}\n    ${quote}`)
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.log(`NOT RUN: ${error.message}`)
}
