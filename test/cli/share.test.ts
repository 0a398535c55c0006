import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { call, putSession, SESSION, writer } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"

const KEY = ["sk", "ant", "api03", "Zx8Qm4Lr7Tn2Vb6Kc1Wd9Sf5Hg3Jy0Pa-Zx8Qm4Lr7Tn2Vb6Kc1Wd9Sf5Hg3Jy0Pb-AAA"].join("-")

async function home(): Promise<string> {
  const place = tempDir()
  const transcript = writer({ cwd: join(place, "shop") })
  transcript.prompt(`Please look at ${place}/shop/a.ts <script>alert(1)</script>`)
  transcript.answer("m1", [{ type: "text", text: "I **see** it." }, call("c1", "Bash", { command: "npm test" })])
  transcript.result("c1", "1 failed", { toolUseResult: "Error: 1 failed" }, { is_error: true })
  putSession(place, transcript.records)
  await syncHome(place)
  return place
}

test("writes a conversation as one self-contained file, and says what was removed", async () => {
  const place = await home()
  const { code, stdout } = await warmDex(place, ["share", SESSION, "--json"])
  expect(code).toBe(0)
  const shared = JSON.parse(stdout)
  expect(shared.taken_out).toEqual([{ what: "your home folder's path", count: 2 }])
  const page = readFileSync(shared.file, "utf8")
  expect(page).toContain("<strong>see</strong>")
  expect(page).toContain("&lt;script&gt;alert(1)&lt;/script&gt;")
  expect(page).toContain("~/shop/a.ts")
  expect(page).not.toContain(place)
  expect(page).not.toMatch(/<script|src=|<link|@import|url\(/)
})

test("writes Markdown, and leaves out tool calls on request", async () => {
  const place = await home()
  const { stdout } = await warmDex(place, ["share", SESSION, "--format", "markdown", "--print"])
  expect(stdout).toMatch(
    /^# .*\n\nClaude Code, .*## You.*## Claude Code.*I \*\*see\*\* it\..*- Bash · `npm test` · failed · 1 line/s,
  )
  const talk = await warmDex(place, ["share", SESSION, "--format", "markdown", "--print", "--no-tools"])
  expect(talk.stdout).toContain("I **see** it.")
  expect(talk.stdout).not.toContain("npm test")
})

test("newer rules remove secrets that older rules missed", async () => {
  const place = await home()
  const store = openStore(join(place, ".dex", "history.db"))
  const [row] = (await store.list({ limit: 1, offset: 0 })).rows
  const [first] = await store.messages(row!.ref, [1])
  const { redactForOthers } = await import("../../src/tools/share/redacted-again.ts")
  const secret = { ...first!, parts: [{ type: "text" as const, text: `key ${KEY}`, origin: "person" as const }] }
  const redacted = JSON.stringify(redactForOthers([secret], KEY, "/home/me", false))
  expect(redacted).not.toContain(KEY.slice(20, 60))
  expect(redacted).toContain('"count":2')
  store.close()
})

test("an existing file is overwritten only if it is named", async () => {
  const place = await home()
  const [first, second] = [
    await warmDex(place, ["share", SESSION, "--json"]),
    await warmDex(place, ["share", SESSION, "--json"]),
  ]
  const files = [first, second].map(({ stdout }) => JSON.parse(stdout).file as string)
  expect(new Set(files).size).toBe(2)
  expect(files.every((file) => existsSync(file))).toBe(true)
  const named = await warmDex(place, ["share", SESSION, "--file", join(place, "no", "such", "x.html")])
  expect([named.code, named.stderr]).toEqual([2, expect.stringContaining("could not be written")])
})
