import { appendFileSync, cpSync, globSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

const FIXTURE = "test/fixtures/pi/0.87-tree/home"

function homeNaming(extra: string, other: string): string {
  const home = tempDir()
  cpSync(FIXTURE, other, { recursive: true })
  mkdirSync(join(home, ".dex"), { mode: 0o700 })
  writeFileSync(join(home, ".dex/config.json"), JSON.stringify({ "sources.extra_roots": extra }), { mode: 0o600 })
  return home
}

const sourceIn = (stdout: string, wanted: string) =>
  (JSON.parse(stdout) as { sources: { source: string }[] }).sources.find(({ source }) => source === wanted)

test("conversations in other homes are read, and sources and doctor say where they were found", async () => {
  const other = tempDir()
  const home = homeNaming(`${other},~/nowhere`, other)
  expect(await warmDex(home, ["sync"])).toMatchObject({ code: 0 })
  const listed = await warmDex(home, ["sources", "--json"])
  expect(sourceIn(listed.stdout, "pi")).toMatchObject({
    name: "Pi",
    basis: "recorded",
    is_there: true,
    looked_in: [join(home, ".pi/agent/sessions"), join(other, ".pi/agent/sessions")],
    kept: 1,
  })
  expect(sourceIn(listed.stdout, "codex")).toMatchObject({ is_there: false, looked_in: [join(home, ".codex")] })
  const { stdout } = await warmDex(home, ["doctor"])
  expect(stdout).toContain(`other home: ${other}: Pi`)
  expect(stdout).toContain(`other home: ${join(home, "nowhere")}: no agent was found in it`)
  rmSync(other, { recursive: true })
  await warmDex(home, ["sync"])
  expect(sourceIn((await warmDex(home, ["sources", "--json"])).stdout, "pi")).toMatchObject({ kept: 1, archived: 1 })
})

test("doctor names the agent and the record types that a newer version of it brings", async () => {
  const home = tempDir()
  cpSync(FIXTURE, home, { recursive: true })
  const [session] = globSync(join(home, ".pi/**/*.jsonl"))
  appendFileSync(session!, `${'{"type":"mind_map","id":"x"}\n'.repeat(3)}{"type":"mood","id":"y"}\n`)
  await warmDex(home, ["sync"])
  const { checks } = JSON.parse((await warmDex(home, ["doctor", "--json"])).stdout)
  expect(checks.find(({ name }: { name: string }) => name === "pi")).toMatchObject({
    status: "note",
    message: expect.stringContaining(
      "Pi wrote records of types that this version of dex does not know, probably because the agent is newer: mind_map (3), something_new (1), mood (1).",
    ),
    mend: "npm install -g dexctx@latest",
    unknown: { mind_map: 3, something_new: 1, mood: 1 },
  })
})
