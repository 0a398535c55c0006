import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import { estimateTokens } from "../../src/core/tokens.ts"
import { dex } from "../support/dex.ts"
import { tempDir } from "../support/temp.ts"

// A retrieval from beginning to end over genuine conversations: the list of all, scans of the candidates, reads of the
// messages that matter. All that an agent takes in of it must stay within 100,000 tokens.

const CORPUS = fileURLToPath(new URL("../../../shared/corpus/claude-code-real.tar.xz", import.meta.url))
const LIMIT = 100_000

type Listed = { id: string; message_count: number }
type Scanned = { lines: string[]; truncated?: object }

test.skipIf(!existsSync(CORPUS))(
  "a retrieval workflow over a genuine history fits 100,000 tokens",
  { timeout: 240_000 },
  async () => {
    const home = tempDir()
    mkdirSync(join(home, ".claude"))
    execFileSync("tar", ["xJf", CORPUS, "-C", join(home, ".claude"), "--strip-components=1"])
    expect((await dex(home, ["sync"])).code).toBe(0)
    let spent = 0
    const ask = async <T>(args: string[]): Promise<T> => {
      const { stdout, stderr, code } = await dex(home, [...args, "--json"])
      expect(code, stderr).toBe(0)
      spent += estimateTokens(stdout)
      return JSON.parse(stdout) as T
    }
    const figures: Record<string, number> = {}
    const since = (name: string, before: number) => (figures[name] = spent - before)

    const { conversations } = await ask<{ conversations: Listed[] }>(["list", "--limit", "1000"])
    expect(conversations.length).toBeGreaterThan(200)
    since(`list of ${conversations.length}`, 0)

    // Ten candidates from all over the history. With more messages in all, less is shown of each.
    const candidates = conversations.filter((_, i) => i % 25 === 12)
    const total = candidates.reduce((sum, { message_count }) => sum + message_count, 0)
    const perMessage = Math.round(Math.min(100, Math.max(20, 5000 / total)))
    let before = spent
    for (const { id, message_count } of candidates) {
      const scan = await ask<Scanned>(["scan", id, "--tokens-per-msg", String(perMessage)])
      expect(scan.lines.length).toBeGreaterThanOrEqual(message_count)
    }
    since(`${candidates.length} scans, ${total} messages at ${perMessage}`, before)

    before = spent
    for (const { id, message_count } of candidates) {
      const middle = Math.ceil(message_count / 2)
      await ask(["read", id, `1,${middle}-${middle + 4},${message_count}`, "--max-tokens", "3000"])
    }
    since(`${candidates.length} reads`, before)
    console.log(`workflow: ${spent} tokens; ${JSON.stringify(figures)}`)
    expect(spent).toBeLessThanOrEqual(LIMIT)

    // With budgets it fits whatever the conversations are: here the ten longest.
    spent = 0
    await ask(["list", "--limit", "1000", "--max-tokens", "30000"])
    for (const { id } of conversations.toSorted((a, b) => b.message_count - a.message_count).slice(0, 10)) {
      await ask<Scanned>(["scan", id, "--max-tokens", "5000"])
      await ask(["read", id, "1-", "--max-tokens", "2000"])
    }
    console.log(`ten longest in budgets: ${spent} tokens`)
    expect(spent).toBeLessThanOrEqual(LIMIT)
    expect(spent).toBeGreaterThan(0.8 * LIMIT)
  },
)

if (!existsSync(CORPUS)) console.log("NOT RUN: the workflow over a genuine history; it is not on this machine")
