import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { DEX, dex } from "../support/dex.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"

const inHours = (hours: number) => Math.round(Date.now() / 1_000 + hours * 3_600)
const statusInput = (used: number) =>
  JSON.stringify({
    session_id: "s",
    rate_limits: {
      five_hour: { used_percentage: used, resets_at: inHours(2) },
      seven_day: { used_percentage: 7, resets_at: inHours(90) },
    },
  })

const line = (home: string, input: string, ...more: string[]) => {
  mkdirSync(join(home, ".dex"), { recursive: true })
  return execFileSync(process.execPath, [DEX, "usage", "--line", ...more], {
    env: { HOME: home, PATH: process.env.PATH },
    input,
    encoding: "utf8",
  })
}

test("the status line stores the limits that the agent passes, and shows them, then and later", async () => {
  const home = tempDir()
  expect(line(home, statusInput(42.4))).toMatch(/^5 h 42 % until \d\d:\d\d · 7 days 7 %\n$/)
  expect(statSync(join(home, ".dex", "limits.json")).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(home, ".dex", "limits.json"), "utf8")).not.toContain("session")
  expect(line(home, "{}")).toContain("5 h 42 %")
  await syncHome(home)
  const { limits } = JSON.parse((await warmDex(home, ["usage", "--json"])).stdout)
  expect(limits).toMatchObject([
    { agent: "claude_code", window: "5 h", used_percent: 42.4, forecast: { percent_to: 71 } },
    { agent: "claude_code", window: "7 days", used_percent: 7 },
  ])
  expect((await warmDex(home, ["usage"])).stdout).toMatch(
    /claude_code {2}5 h +42 % {2}resets .* at this pace 71 % by then/,
  )
})

test("the replaced status line command gets the same input, and its output comes first", () => {
  const home = tempDir()
  const input = statusInput(5)
  expect(line(home, input, "--before", `cat > "$HOME/got"; echo mine; echo two`)).toMatch(/^mine\ntwo\n5 h 5 %/)
  expect(readFileSync(join(home, "got"), "utf8")).toBe(input)
  expect(line(home, input, "--before", "exit 3")).toMatch(/^5 h 5 %/)
})

test("input that is no status line's changes nothing", () => {
  const home = tempDir()
  line(home, statusInput(5))
  for (const input of [
    "",
    "null",
    "[]",
    "{",
    '{"rate_limits":[]}',
    `{"rate_limits":{"five_hour":{"used_percentage":1e999,"resets_at":1}}}`,
    "x".repeat(2 << 20),
  ])
    expect(line(home, input)).toContain("5 h 5 %")
  writeFileSync(join(home, ".dex", "limits.json"), '{"claude_code":{"at":"x"}}')
  expect(line(home, statusInput(6))).toContain("5 h 6 %")
})

test("an input that stays open does not keep the status line waiting", async () => {
  const home = tempDir()
  line(home, statusInput(5))
  const child = spawn(process.execPath, [DEX, "usage", "--line"], {
    env: { HOME: home },
    stdio: ["pipe", "pipe", "inherit"],
  })
  const [code] = await once(child, "exit")
  expect(code).toBe(0)
})

test("Codex' limits come from the end of its newest session", async () => {
  const home = tempDir()
  const record = (used: number, limit_id = "codex", at = Date.now()) => ({
    timestamp: new Date(at).toISOString(),
    type: "event_msg",
    payload: {
      type: "token_count",
      info: null,
      rate_limits: {
        limit_id,
        primary: { used_percent: used, window_minutes: 300, resets_at: inHours(1) },
        secondary: null,
        plan_type: "plus",
      },
    },
  })
  const put = (day: string, records: object[]) => {
    const file = join(
      home,
      ".codex/sessions/2026",
      day,
      `rollout-2026-${day.replace("/", "-")}T10-00-00-01a1dc42-b94f-71e2-acbe-6cab07e548f${day.at(-1)}.jsonl`,
    )
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, records.map((one) => `${JSON.stringify(one)}\n`).join(""))
  }
  put("11/02", [record(90, "codex", Date.now() - 60_000)])
  put("11/03", [
    record(10),
    record(12.5),
    record(99, "codex_other"),
    { type: "event_msg", payload: { rate_limits: null } },
  ])
  await syncHome(home)
  const { limits } = JSON.parse((await warmDex(home, ["usage", "--json"])).stdout)
  expect(limits).toMatchObject([{ agent: "codex", window: "5 h", used_percent: 12.5 }])
  expect((await dex(home, ["usage", "--line"])).stdout).not.toContain("12")
})
