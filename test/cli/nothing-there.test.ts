import { join } from "node:path"
import { expect, test } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { synced, syncedOnce } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

const home = syncedOnce()

test.each([["search"], ["ask"], ["chat"], ["list"]])(
  "dex %s in an empty history says that there is none yet, and what to do",
  async (name) => {
    for (const empty of [tempDir(), await readEmpty()]) {
      const { code, stdout, stderr } = await dex(empty, name === "list" ? ["list"] : [name, "zebrafinch"])
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
      expect(stderr.replace(/\s+/g, " ")).toContain(
        "There is no history yet. `dex sync` reads your agents' conversations",
      )
      expect(stderr).not.toMatch(/these are quotes|fewer or other words/)
    }
  },
)

/** A sync that found nothing. */
async function readEmpty(): Promise<string> {
  const empty = tempDir()
  expect((await dex(empty, ["sync"])).code).toBe(0)
  return empty
}

test("the lack of an answer is not called a quote", async () => {
  for (const name of ["ask", "chat"]) {
    const { code, stderr } = await dex(home, [name, "zebrafinch narwhal"])
    expect(code).toBe(1)
    expect(stderr).toContain("No answer was found.")
    expect(stderr).not.toContain("these are quotes")
  }
})

test("dex chat says what is not read yet, as ask and search do", async () => {
  const own = await synced()
  const store = openStore(join(own, ".dex", "history.db"))
  await store.saveProgress({ done: 3, total: 9, at: Date.now() })
  store.close()
  for (const name of ["chat", "ask", "search"])
    expect((await dex(own, [name, "token"])).stderr).toContain(
      "3 of 9 transcripts read so far. `dex sync` reads the rest.",
    )
})

test("names the filter that excludes everything, and lists the projects if one does not exist", async () => {
  const unknown = await dex(home, ["list", "--project", "zebrafinch"])
  expect(unknown.code).toBe(1)
  expect(unknown.stderr).toContain(`No project's path contains "zebrafinch". Projects: api, web.`)
  expect(unknown.stderr).not.toMatch(/no history|dex sync/)
  expect((await dex(home, ["list", "--project", "web", "--to", "2020-01-01"])).stderr).toContain(
    "No conversation matches --project web --to 2020-01-01.",
  )
  expect((await dex(home, ["decisions", "--file", "src/auth.ts"])).stderr).toContain(
    "`dex decisions --file src/auth.ts --all` shows the decisions of every project.",
  )
})
