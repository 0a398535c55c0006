import { cpSync } from "node:fs"
import { expect, test } from "vitest"
import { smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

// Counts of conversations are those of people. Those of subagents and scripts are shown separately, never added.

test("every screen shows the same number as dex list", async () => {
  const home = tempDir()
  cpSync("test/fixtures/claude_code/2.1.197-subagent-hooks-resume/home", home, { recursive: true })
  smallHome(home)
  const first = await dex(home, [])
  const list = await dex(home, ["list", "--all", "--json"])
  const listed = await dex(home, ["list", "--json"])
  const kinds = (JSON.parse(list.stdout).conversations as { kind: string }[]).map(({ kind }) => kind)
  const count = (kind: string) => kinds.filter((one) => one === kind).length
  expect(count("subagent")).toBeGreaterThan(0)
  expect(JSON.parse(listed.stdout).total).toBe(count("person"))
  const counts = `${count("person")} conversations (and ${count("automation")} automated, ${count("subagent")} by subagents)`
  expect(first.stdout).toContain(counts)
  expect((await dex(home, ["sources"])).stdout).toContain(counts)
  expect((await dex(home, ["sync"])).stdout).toContain(`In total, dex has ${counts}`)
  const doctor = (await dex(home, ["doctor"])).stdout
  expect(doctor).toContain(`history: ${counts}`)
  expect(doctor).toContain(`claude_code: ${counts}`)
  expect((await dex(home, ["stats"])).stdout).toContain(counts.replace(" conversations", ""))
})
