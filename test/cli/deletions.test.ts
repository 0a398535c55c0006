import { appendFileSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

// Claude Code deletes a transcript if its file has not changed for a number of days.

const DAY = 86_400_000

/** A session whose file was last changed so many days ago. */
function session(home: string, n: number, days: number): string {
  const path = claudeSession(home, {
    id: `${n}1111111-1111-4111-8111-111111111111`,
    start: "2026-10-03T10:00:00Z",
    turns: [{ user: `Why is the cache of number ${n} cold?`, assistant: "It was restarted." }],
  })
  age(path, days)
  return path
}

function age(path: string, days: number): void {
  const at = (Date.now() - days * DAY) / 1000
  utimesSync(path, at, at)
}

const retention = async (home: string) => {
  const { checks } = JSON.parse((await dex(home, ["doctor", "--json"])).stdout)
  return checks.find(({ name }: { name: string }) => name === "retention")
}

test("says how many stored conversations Claude Code deletes within a week", async () => {
  const home = tempDir()
  session(home, 1, 40)
  session(home, 2, 25)
  const path = session(home, 3, 20)
  const first = await dex(home, [])
  expect(first.stdout).toContain("dex has copies of 2 transcripts that Claude Code will delete within 7 days.")
  expect(await retention(home)).toMatchObject({
    status: "ok",
    message: expect.stringContaining(
      "after 30 days. dex has copies of 2 transcripts that Claude Code will delete within 7 days.",
    ),
  })
  writeFileSync(join(home, ".claude", "settings.json"), '{"cleanupPeriodDays": 365}')
  expect((await retention(home)).message).toContain("after 365 days. It will delete none within the next week.")
  expect((await dex(home, [])).stdout).not.toContain("will delete")
  writeFileSync(join(home, ".claude", "settings.json"), '{"cleanupPeriodDays": 10}')
  expect((await retention(home)).message).toContain("dex has copies of 3 transcripts")
  rmSync(path)
  expect((await retention(home)).message).toContain("dex has copies of 2 transcripts")
})

test("says clearly if conversations are about to be deleted before they are read", async () => {
  const home = tempDir()
  const path = session(home, 1, 29)
  session(home, 2, 1)
  expect(await retention(home)).toMatchObject({
    status: "note",
    mend: "dex sync",
    message: expect.stringContaining(
      "Claude Code will delete 1 transcript within 7 days, and dex has not read it yet.",
    ),
  })
  await syncHome(home)
  expect(await retention(home)).toMatchObject({ status: "ok" })
  session(home, 3, 28)
  appendFileSync(path, "{}\n")
  age(path, 28)
  expect((await retention(home)).message).toContain(
    "will delete 2 transcripts within 7 days, and dex has not read any of them yet.",
  )
  session(home, 4, 28)
  await syncHome(home)
  session(home, 5, 28)
  expect((await retention(home)).message).toContain(
    "will delete 4 transcripts within 7 days, and dex has not read 1 of them yet.",
  )
})
