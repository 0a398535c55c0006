import { chmodSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import { run } from "../../src/tools/doctor/run.ts"
import { synced } from "../support/synced.ts"
import { warmDex as dex } from "../support/warm.ts"

const HOME = "home"

/** The result of doctor's check of the folder, as on this platform. */
async function homeCheck(home: string, platform: NodeJS.Platform) {
  const made = createDex({ env: { HOME: home }, cwd: home, version: "0" })
  onTestFinished(() => made.close())
  const { checks } = await run({ ...made, machine: { ...made.machine, platform } })
  return checks.find(({ name }) => name === HOME)!
}

test("doctor names every file that others can read", async () => {
  const home = await synced()
  expect(await homeCheck(home, "linux")).toMatchObject({
    status: "ok",
    message: expect.stringContaining("by you only"),
  })
  await dex(home, ["fix", "token already used"])
  const file = join(home, ".dex", KNOWLEDGE_FILE)
  chmodSync(file, 0o640)
  expect(await homeCheck(home, "linux")).toMatchObject({
    status: "problem",
    message: expect.stringContaining(`can read ${KNOWLEDGE_FILE}`),
    mend: `chmod go= ${file}`,
  })
})

test("doctor does not report permissions that it has not checked", async () => {
  const home = await synced()
  chmodSync(join(home, ".dex", "history.db"), 0o644)
  const { status, message } = await homeCheck(home, "win32")
  expect(status).toBe("ok")
  expect(message).toContain("are not checked on Windows")
  expect(message).not.toContain("by you only")
})
