import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { createReader } from "../../src/watch/watch.ts"
import { tempDir } from "../support/temp.ts"

test("a reading process that cannot be started is reported each time, stops nothing, and is started as soon as it can be", async () => {
  const home = tempDir()
  // A process cannot be started in a folder that does not exist; to the system it looks as if the program were missing.
  const cwd = join(home, "gone")
  const env = { PATH: process.env.PATH ?? "", HOME: home }
  const lines: string[] = []
  const reader = createReader({ env, cwd, version: "test" }, (line) => void lines.push(line))
  onTestFinished(() => reader.stop())
  const ask = () => reader.ask({ type: "sync", source: "claude_code" }, () => {})
  for (let i = 0; i < 2; i++) await expect(ask()).rejects.toThrow(/reading process cannot be started.*ENOENT.*again/)
  await reader.stop()
  await expect(ask()).rejects.toThrow(/cannot be started/)
  mkdirSync(cwd)
  expect(await ask()).toMatchObject({ busy: false, messages: 0 })
  await reader.stop()
  expect(lines).toEqual([])
})
