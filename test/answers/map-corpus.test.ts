import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import { dex } from "../support/dex.ts"
import { modelServer } from "../support/model-server.ts"
import { tempDir } from "../support/temp.ts"
import { faithful, isMerge } from "./map-script.ts"

const CORPUS = fileURLToPath(new URL("../../../shared/corpus/claude-code-real.tar.xz", import.meta.url))

test.skipIf(!existsSync(CORPUS))(
  "a genuine history: batches within 5 % of their size, every conversation mapped, nothing asked twice",
  { timeout: 300_000 },
  async () => {
    const home = tempDir()
    mkdirSync(join(home, ".claude"))
    execFileSync("tar", ["xJf", CORPUS, "-C", join(home, ".claude"), "--strip-components=1"])
    expect((await dex(home, ["sync"])).code).toBe(0)
    const server = await modelServer(faithful)
    const env = { DEX_LLM_PROVIDER: server.url }
    const json = async (...args: string[]) => {
      const { stdout, stderr, code } = await dex(home, ["map", "what was decided", ...args, "--json"], env)
      expect(code, stderr).toBe(0)
      return JSON.parse(stdout)
    }
    const dry = await json("--dry-run")
    expect(server.asked).toHaveLength(0)
    expect(dry.conversations + dry.without_text).toBeGreaterThan(200)
    const sizes = dry.packed.map((batch: { estimated_tokens: number }) => batch.estimated_tokens)
    for (const size of sizes.slice(0, -1)) {
      expect(size).toBeGreaterThanOrEqual(76_000)
      expect(size).toBeLessThanOrEqual(80_000)
    }
    const started = Date.now()
    const first = await json()
    const took = Date.now() - started
    expect(first.batches).toMatchObject({ total: sizes.length, asked: sizes.length, failed: 0, not_done: 0 })
    expect(first.dropped).toEqual({ foreign_refs: 0, items_without_refs: 0, items_with_foreign_links: 0 })
    const named = new Set(
      first.result.items.flatMap((item: { refs: string[] }) => item.refs.map((ref) => ref.split("#")[0])),
    )
    expect(named.size).toBe(dry.conversations)
    const paid = server.asked.length
    const again = await json()
    expect(server.asked).toHaveLength(paid)
    expect(again.result).toEqual(first.result)
    console.log(
      `map of ${dry.conversations} conversations, ${dry.estimated_tokens} tokens: ${sizes.length} batches of ${Math.min(...sizes.slice(0, -1))} to ${Math.max(...sizes)} tokens, the last ${sizes.at(-1)}; ${server.asked.filter(isMerge).length} merges; ${took} ms with a model that answers at once; again: 0 calls`,
    )
  },
)

if (!existsSync(CORPUS)) console.log("NOT RUN: a map over a genuine history; it is not on this machine")
