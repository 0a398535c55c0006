import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { claudeCodeConnector } from "../../src/agents/claude-code/connector.ts"
import type { Connector } from "../../src/agents/kit/connector.ts"
import { syncHistory } from "../../src/ingest/sync.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { random } from "../redact/secrets.ts"
import { writer } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"

const token = (seed: number) => `${"gh"}p_${random(seed).of("abcdefghijklmnopqrstuvwxyz0123456789", 36)}`

/** A transcript with two secrets and a damaged line, which was read once. */
async function readOnce() {
  const home = tempDir()
  const transcript = writer()
  for (const n of [1, 2]) transcript.prompt(`Use ${token(n)}`)
  const path = join(home, ".claude", "projects", "-p", "11111111-2222-4333-8444-555555555555.jsonl")
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${transcript.records.map((record) => JSON.stringify(record)).join("\n")}\n{"damaged\n`)
  const dir = join(home, ".dex")
  mkdirSync(dir)
  const store = openStore(join(dir, "history.db"))
  const index = openIndex(join(dir, "index.db"))
  onTestFinished(() => {
    store.close()
    index.close()
  })
  const sync = (connector: Connector = claudeCodeConnector, redactAgain = false) =>
    syncHistory(
      {
        ...{ store, index, connectors: [connector] },
        machine: { home, env: {}, platform: "linux" as const },
        home: { dir, history: join(dir, "history.db"), lock: join(dir, "sync.lock") },
      },
      { redactAgain },
    )
  const counts = async () => {
    const [report] = await store.sourceReport()
    return { ...report!.redactions, damaged: report!.skipped["damaged line"] }
  }
  await sync()
  expect(await counts()).toEqual({ "github-token": 2, damaged: 1 })
  return { path, transcript, sync, counts }
}

const newer: Connector = { ...claudeCodeConnector, version: claudeCodeConnector.version + 1 }

test("what was removed from a file is still known after a newer connector parsed its stored records again", async () => {
  const { path, sync, counts } = await readOnce()
  rmSync(path)
  await sync(newer)
  expect(await counts()).toEqual({ "github-token": 2, damaged: 1 })
})

test("a newer connector that reads the file itself counts everything in it once", async () => {
  const { sync, counts } = await readOnce()
  await sync(newer)
  expect(await counts()).toEqual({ "github-token": 2, damaged: 1 })
})

test("a growing file adds to the counts", async () => {
  const { path, transcript, sync, counts } = await readOnce()
  transcript.prompt(`Use ${token(3)}`)
  appendFileSync(path, `${JSON.stringify(transcript.records.at(-1))}\n`)
  await sync()
  expect(await counts()).toEqual({ "github-token": 3, damaged: 1 })
})
