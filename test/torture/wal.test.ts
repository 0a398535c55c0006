import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { generateCorpus, generator } from "../../bench/corpus.ts"
import { claudeCodeConnector } from "../../src/agents/claude-code/connector.ts"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { syncHistory } from "../../src/ingest/sync.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"

/** 100 in CI, 1,000 with `npm run torture`. */
const CUTS = Number(process.env.DEX_CUTS ?? 100)
const dir = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "dex-wal-"))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

test(
  `a write-ahead log cut or zeroed at ${CUTS} random places opens to a prefix of the transactions`,
  async () => {
    const { database, log, units } = await historyWithLog()
    const random = generator(7)
    const copy = join(dir, "copy")
    const seen = new Set<number>()
    for (let i = 0; i < CUTS; i++) {
      rmSync(copy, { recursive: true, force: true })
      mkdirSync(copy)
      const path = join(copy, "history.db")
      copyFileSync(database, path)
      copyFileSync(log, `${path}-wal`)
      damage(`${path}-wal`, random)
      const store = openStore(path)
      try {
        expect(await store.check()).toEqual([])
        const known = await store.knownUnits("claude_code")
        seen.add(known.size)
        for (const key of known.keys()) {
          const unit = (await store.knownUnit("claude_code", key))!
          const { offset } = JSON.parse(unit.cursor) as { offset: number }
          const expected = readFileSync(unit.path).subarray(0, offset).toString("utf8").split("\n").length - 1
          const id = unit.key.split("/").at(-1)!.replace(".jsonl", "")
          expect((await store.messages({ source: "claude_code", id })).length).toBe(expected)
        }
        expect([...known.keys()].sort()).toEqual(units.slice(0, known.size).sort())
      } finally {
        store.close()
      }
    }
    expect(seen.size).toBeGreaterThan(Math.min(5, CUTS / 4))
  },
  300_000 + CUTS * 2000,
)

/** A history that was written and never checkpointed: all of it is in the log. */
async function historyWithLog(): Promise<{ database: string; log: string; units: string[] }> {
  const home = join(dir, "home")
  generateCorpus(join(home, ".claude"), { messages: 2000, messagesPerConversation: 40, seed: 5 })
  const dex = join(home, ".dex")
  const history = join(dex, "history.db")
  const store = openStore(history)
  const index = openIndex(join(dex, INDEX_FILE))
  const kept = join(dir, "kept")
  mkdirSync(kept)
  const order: string[] = []
  const watched = {
    ...store,
    writeUnit: async (write: Parameters<typeof store.writeUnit>[0]) => {
      order.push(write.unit.key)
      return store.writeUnit(write)
    },
    // Copies the log as it would be after a power loss, before a checkpoint.
    checkpoint: async () => {
      copyFileSync(history, join(kept, "history.db"))
      copyFileSync(`${history}-wal`, join(kept, "history.db-wal"))
    },
  }
  const machine = { home, env: {}, platform: "linux" as const }
  await syncHistory({
    store: watched,
    index,
    connectors: [claudeCodeConnector],
    machine,
    home: { dir: dex, history, lock: join(dex, "lock") },
  })
  store.close()
  index.close()
  return { database: join(kept, "history.db"), log: join(kept, "history.db-wal"), units: order }
}

function damage(log: string, random: () => number): void {
  const size = statSync(log).size
  const at = Math.floor(random() * size)
  if (random() < 0.6) {
    truncateSync(log, at)
    return
  }
  // A disk that lost its last sectors leaves zeros where they should be.
  const fd = openSync(log, "r+")
  const from = at - (at % 512)
  writeSync(fd, Buffer.alloc(size - from), 0, size - from, from)
  closeSync(fd)
}
