import { join } from "node:path"
import { expect, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { dex } from "../support/dex.ts"
import { tempDir } from "../support/temp.ts"

const PROCESSES = 24
const ROUNDS = Number(process.env.DEX_ROUNDS ?? 3)

test(
  `${PROCESSES} processes open a new home, search and sync at once: none reports a busy database, and everything is read once`,
  async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const home = tempDir()
      const { messages } = generateCorpus(join(home, ".claude"), {
        messages: 4500,
        messagesPerConversation: 50,
        seed: round + 1,
      })
      const commands = [["sync"], ["search", "function error"], ["stats", "--json"], ["list"]]
      const runs = await Promise.all(
        Array.from({ length: PROCESSES }, (_, i) => dex(home, commands[i % commands.length]!)),
      )
      for (const run of runs) {
        expect(`${run.stdout}${run.stderr}`).not.toMatch(/busy|locked|SQLITE/i)
        expect(run.code, run.stderr).toBeOneOf([0, 1])
      }
      expect((await dex(home, ["sync"])).code).toBe(0)
      const store = openStore(join(home, ".dex", "history.db"))
      const index = openIndex(join(home, ".dex", INDEX_FILE))
      try {
        expect((await store.stats()).messages).toBe(messages)
        expect([...(await store.check()), ...(await index.check())]).toEqual([])
        expect(await index.isBehind(store)).toBe(false)
      } finally {
        store.close()
        index.close()
      }
    }
  },
  ROUNDS * 120_000,
)
