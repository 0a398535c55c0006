import { execFileSync } from "node:child_process"
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, test } from "vitest"
import { claudeCodeConnector } from "../../src/agents/claude-code/connector.ts"
import { isUnreadable } from "../../src/agents/kit/connector.ts"
import { parseObject } from "../../src/core/record.ts"
import { estimateTokens } from "../../src/core/tokens.ts"
import { totalUsage } from "../../src/core/usage.ts"
import { redactRecord } from "../../src/redact/redact.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { faithful, isMerge } from "../answers/map-script.ts"
import { connect, type Result } from "../mcp/client.ts"
import { readUnit } from "../support/claude-code.ts"
import { dex } from "../support/dex.ts"
import { modelServer } from "../support/model-server.ts"
import { sharedTempDir } from "../support/temp.ts"

// Tests on 251 genuine sessions, if they are on this machine. They are read once for all tests.

const CORPUS = fileURLToPath(new URL("../../../shared/corpus/claude-code-real.tar.xz", import.meta.url))
if (!existsSync(CORPUS)) console.log("NOT RUN: a genuine history; it is not on this machine")

describe.skipIf(!existsSync(CORPUS))("a genuine history", () => {
  const home = sharedTempDir()
  const agent = join(home, ".claude")

  beforeAll(async () => {
    mkdirSync(agent)
    execFileSync("tar", ["xJf", CORPUS, "-C", agent, "--strip-components=1"])
    expect((await dex(home, ["sync"])).code).toBe(0)
  })

  test("of 251 sessions is read with every conversation and subagent, no unknown record and seven damaged lines", async () => {
    const found = [...claudeCodeConnector.discover(agent, () => false)]
    const told = found.map((unit) => {
      if (isUnreadable(unit)) throw new Error(unit.unreadable)
      const { conversations, unknown, skipped } = readUnit(unit)
      return {
        conversations: conversations.map(({ id, kind, messages }) => ({ id, kind, count: messages.length })),
        unknown,
        skipped,
      }
    })
    const all = told.flatMap((unit) => unit.conversations)
    const main = all.filter(({ kind }) => kind === "person")
    const agents = new Set(all.filter(({ kind }) => kind === "subagent").map(({ id }) => id))
    expect([main.length, agents.size]).toEqual([251, 121])
    expect(main.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThan(31_000)
    expect(told.reduce((sum, { skipped }) => sum + skipped, 0)).toBe(7)
    expect(Object.assign({}, ...told.map(({ unknown }) => unknown))).toEqual({})
  })

  test("usage equals a count of the raw files, to the token", async () => {
    const { sum, answers } = countRaw(agent)
    const store = openStore(join(home, ".dex", "history.db"))
    const { rows } = await store.list({ limit: 10_000, offset: 0 })
    store.close()
    const total = totalUsage(rows.flatMap(({ usage }) => usage ?? []))!
    console.log(`usage of ${answers} answers: ${JSON.stringify(total)}`)
    const { input, output, cache_read, cache_write, cache_write_5m, cache_write_1h } = total
    expect({ input, output, cache_read, cache_write, cache_write_5m, cache_write_1h }).toEqual(sum)
  })

  test("dex usage equals a count of the raw files, to the token, by each of its groups", async () => {
    const { sum } = countRaw(agent)
    const { cache_write: _, ...apart } = sum
    for (const by of ["day", "block", "model", "conversation", "commit", "pull_request"]) {
      const { total, rows } = JSON.parse((await dex(home, ["usage", by, "--limit", "10000", "--json"])).stdout)
      expect([by, total]).toEqual([by, expect.objectContaining(apart)])
      const added = rows.reduce((tokens: number, row: { tokens: number }) => tokens + row.tokens, 0)
      expect([by, added]).toEqual([by, total.tokens])
    }
  })

  test("has at most 0.1 false redactions per MB of transcripts", async () => {
    const found: string[] = []
    let bytes = 0
    for (const file of globSync(join(agent, "**", "*.jsonl"))) {
      if (bytes > 60e6) break
      for (const line of readFileSync(file, "utf8").split("\n")) {
        if (line === "") continue
        const record = parseObject(line)
        if (!record) continue
        bytes += line.length
        const { redactions } = redactRecord(record)
        for (const rule in redactions) found.push(`${file} ${rule}`)
      }
    }
    expect(bytes).toBeGreaterThan(40e6)
    expect(found.length / (bytes / 1e6), found.join("\n")).toBeLessThanOrEqual(0.1)
  })

  test("search, timeline and get over a genuine history take at most 5,000 tokens, as text and as data", async () => {
    const client = await connect(home)
    const sizes = (results: Result[]) => ({
      text: results.reduce((sum, { content }) => sum + estimateTokens(content[0]!.text), 0),
      data: results.reduce((sum, { structuredContent }) => sum + estimateTokens(JSON.stringify(structuredContent)), 0),
    })
    for (const query of [
      "refresh token",
      "flaky test",
      "race condition in the hook",
      "git worktree",
      "error",
      "performance",
    ]) {
      const found = await client.call("dex_search", { query })
      const [best] = found.structuredContent!.results as { id: string; message_index: number }[]
      const id = `${best!.id}#${best!.message_index}`
      const around = await client.call("dex_timeline", { id })
      // Once as the hints suggest, and once by an agent that requests the entire conversation.
      for (const ids of [[id], [best!.id]]) {
        const steps = [found, around, await client.call("dex_get", { ids })]
        expect(steps.filter(({ isError }) => isError)).toEqual([])
        const { text, data } = sizes(steps)
        console.log(
          `${query}, ${ids[0] === id ? "around a message" : "whole"}: ${text} tokens as text, ${data} as data`,
        )
        expect(Math.max(text, data)).toBeLessThanOrEqual(5_000)
        expect(Math.min(text, data)).toBeGreaterThan(500)
      }
    }
  })

  // A complete retrieval: list all conversations, scan the candidates, and read the relevant messages. The output of all commands
  // must stay within 100,000 tokens.
  test("a retrieval workflow over a genuine history fits 100,000 tokens", async () => {
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

    // Ten candidates from the entire history. The more messages they have in all, the less is shown of each.
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
    expect(spent).toBeLessThanOrEqual(100_000)

    // With budgets the output fits for any conversations, even the ten longest.
    spent = 0
    await ask(["list", "--limit", "1000", "--max-tokens", "30000"])
    for (const { id } of conversations.toSorted((a, b) => b.message_count - a.message_count).slice(0, 10)) {
      await ask<Scanned>(["scan", id, "--max-tokens", "5000"])
      await ask(["read", id, "1-", "--max-tokens", "2000"])
    }
    console.log(`ten longest in budgets: ${spent} tokens`)
    expect(spent).toBeLessThanOrEqual(100_000)
    expect(spent).toBeGreaterThan(80_000)
  })

  test("a map fills its batches within 5 % of their size, maps every conversation and asks nothing twice", async () => {
    const server = await modelServer(faithful)
    const env = { DEX_LLM_PROVIDER: server.url }
    const json = async (...args: string[]) => {
      const { stdout, stderr, code } = await dex(home, ["map", "what was decided", ...args, "--json"], env)
      expect(code, stderr).toBe(0)
      return JSON.parse(stdout)
    }
    const dry = await json("--dry-run")
    expect(server.requests).toHaveLength(0)
    expect(dry.conversations + dry.without_text).toBeGreaterThan(200)
    const sizes = dry.packed.map((batch: { estimated_tokens: number }) => batch.estimated_tokens)
    for (const size of sizes.slice(0, -1)) {
      expect(size).toBeGreaterThanOrEqual(76_000)
      expect(size).toBeLessThanOrEqual(80_000)
    }
    const started = performance.now()
    const first = await json()
    const took = Math.round(performance.now() - started)
    expect(first.batches).toMatchObject({ total: sizes.length, asked: sizes.length, failed: 0, not_done: 0 })
    expect(first.dropped).toEqual({ foreign_refs: 0, items_without_refs: 0, items_with_foreign_links: 0 })
    const named = new Set(
      first.result.items.flatMap((item: { refs: string[] }) => item.refs.map((ref) => ref.split("#")[0])),
    )
    expect(named.size).toBe(dry.conversations)
    const paid = server.requests.length
    const again = await json()
    expect(server.requests).toHaveLength(paid)
    expect(again.result).toEqual(first.result)
    console.log(
      `map of ${dry.conversations} conversations, ${dry.estimated_tokens} tokens: ${sizes.length} batches of ${Math.min(...sizes.slice(0, -1))} to ${Math.max(...sizes)} tokens, the last ${sizes.at(-1)}; ${server.requests.filter(isMerge).length} merges; ${took} ms with a model that answers at once; again: 0 calls`,
    )
  })
})

type Listed = { id: string; message_count: number }
type Scanned = { lines: string[]; truncated?: object }

type Line = {
  type?: string
  message?: Said
  isApiErrorMessage?: boolean
  data?: { message?: Line; normalizedMessages?: Line[] }
}
type Said = { id: string; model: string; usage?: Record<string, number> & { cache_creation?: Record<string, number> } }

/** Counts every answer once by its id, even if several files repeat it. Its last record counts. */
function countRaw(dir: string) {
  const answers = new Map<string, NonNullable<Said["usage"]>>()
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    if (!entry.name.endsWith(".jsonl")) continue
    for (const line of readFileSync(join(entry.parentPath, entry.name), "utf8").split("\n")) {
      let record: Line
      try {
        record = JSON.parse(line)
      } catch {
        continue // seven lines of this history are damaged, and none of these is an answer
      }
      for (const told of [record, record.data?.message, ...(record.data?.normalizedMessages ?? [])]) {
        const usage = told?.type === "assistant" ? told.message?.usage : undefined
        if (usage && told!.message!.model !== "<synthetic>" && !told!.isApiErrorMessage)
          answers.set(told!.message!.id, usage)
      }
    }
  }
  const sum = { input: 0, output: 0, cache_read: 0, cache_write: 0, cache_write_5m: 0, cache_write_1h: 0 }
  for (const usage of answers.values()) {
    sum.input += usage.input_tokens ?? 0
    sum.output += usage.output_tokens ?? 0
    sum.cache_read += usage.cache_read_input_tokens ?? 0
    sum.cache_write += usage.cache_creation_input_tokens ?? 0
    sum.cache_write_5m += usage.cache_creation?.ephemeral_5m_input_tokens ?? 0
    sum.cache_write_1h += usage.cache_creation?.ephemeral_1h_input_tokens ?? 0
  }
  return { sum, answers: answers.size }
}
