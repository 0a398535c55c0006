import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

const AGENTS_SHELL = { CLAUDE_CODE_SESSION_ID: "7b0d1a52-0000-4000-8000-000000000000" }

function project(): { home: string; at: string } {
  const home = tempDir()
  const at = join(home, "code/api")
  mkdirSync(at, { recursive: true })
  return { home, at }
}

const inside = ({ home, at }: { home: string; at: string }, args: string[], env: Record<string, string> = {}) =>
  warmDex(home, args, env, at)

async function noteOf(place: { home: string; at: string }, args: string[], env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await inside(place, ["note", ...args, "--json"], env)
  expect([code, stderr]).toEqual([0, ""])
  return JSON.parse(stdout)
}

test("a note is redacted, listed, found, shown, and forgotten with its file", async () => {
  const place = project()
  const secret = `ghp_${"0123456789abcdefghij"}ABCDEFGHIJ012345`
  const { done, notes } = await noteOf(place, ["Deploys need the VPN and", secret, "--file", "deploy.sh"])
  expect(done).toBe("kept")
  expect(notes).toMatchObject([{ by: "person", confirmed: true, project: place.at, files: ["deploy.sh"] }])
  const folder = join(place.home, ".dex/notes")
  expect(readFileSync(join(folder, readdirSync(folder)[0]!), "utf8")).not.toContain(secret)
  const listed = await inside(place, ["notes"])
  expect(listed.stdout).toContain("Deploys need the VPN and [REDACTED")
  expect(listed.stdout).toContain("by you ")
  expect((await inside(place, ["search", "deploys", "vpn"])).stdout).toContain(notes[0].ref)
  expect((await inside(place, ["show", notes[0].ref])).stdout).toContain("Deploys need the VPN")
  expect((await inside(place, ["forget", notes[0].ref, "--yes"])).code).toBe(0)
  expect(readdirSync(folder)).toEqual([])
  expect((await inside(place, ["note"])).code).toBe(1)
  await inside(place, ["sync"])
  expect((await inside(place, ["search", "deploys", "vpn"])).code).toBe(1)
})

test("a note belongs to its project, and --file lists those of a file", async () => {
  const place = project()
  const other = join(place.home, "code/other")
  mkdirSync(other)
  await noteOf(place, ["about this one", "--file", "src/a.ts"])
  await noteOf(place, ["about the other one", "--project", other])
  const texts = async (...args: string[]) => (await noteOf(place, args)).notes.map(({ text }: { text: string }) => text)
  expect(await texts()).toEqual(["about this one"])
  expect(await texts("--all")).toEqual(["about the other one", "about this one"])
  expect(await texts("--file", "src/a.ts")).toEqual(["about this one"])
  const nowhere = await inside(place, ["note", "x", "--project", "missing"])
  expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringContaining("There is no folder")])
})

test("correcting a note keeps the old text readable, but it no longer counts", async () => {
  const place = project()
  const { ref } = (await noteOf(place, ["The port is 8080", "--file", "a.ts"])).notes[0]
  expect(await noteOf(place, [ref, "The port is 9090"])).toMatchObject({
    done: "corrected",
    notes: [{ ref, text: "The port is 9090", files: ["a.ts"] }],
  })
  expect(await noteOf(place, [])).toMatchObject({
    total: 1,
    notes: [{ ref, text: "The port is 9090", files: ["a.ts"] }],
  })
})

test("a note that an agent writes in its shell is the agent's, and only the person can confirm it", async () => {
  const place = project()
  const { ref, by, confirmed } = (await noteOf(place, ["tabs", "everywhere"], AGENTS_SHELL)).notes[0]
  expect([by, confirmed]).toEqual(["Claude Code", false])
  expect((await inside(place, ["search", "tabs everywhere"])).stdout).toContain(
    "[written by Claude Code, not confirmed]",
  )
  const refused = await inside(place, ["note", "confirm", ref], AGENTS_SHELL)
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("Only a person can confirm a note")])
  expect(await noteOf(place, ["confirm", ref])).toMatchObject({
    done: "confirmed",
    notes: [{ by: "Claude Code", confirmed: true }],
  })
  const mine = (await noteOf(place, ["spaces"])).notes[0]
  const changed = await inside(place, ["note", mine.ref, "tabs"], AGENTS_SHELL)
  expect([changed.code, changed.stderr]).toEqual([2, expect.stringContaining("Claude Code cannot change that note")])
  expect((await inside(place, ["note", ref, "tabs only"], AGENTS_SHELL)).code).toBe(2)
  const own = (await noteOf(place, ["a draft"], AGENTS_SHELL)).notes[0]
  expect((await noteOf(place, [own.ref, "tabs only"], AGENTS_SHELL)).notes[0].confirmed).toBe(false)
  expect((await noteOf(place, [])).notes).toMatchObject([
    { text: "tabs only", confirmed: false },
    { text: "spaces" },
    { text: "tabs everywhere", confirmed: true },
  ])
})
