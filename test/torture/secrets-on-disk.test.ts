import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { claudeCodeConnector } from "../../src/agents/claude-code/connector.ts"
import { syncHistory } from "../../src/ingest/sync.ts"
import { redactText } from "../../src/redact/redact.ts"
import { packLines } from "../../src/store/history/codec.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { leakOf, type Planted, plant, random } from "../redact/secrets.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { tempDir } from "../support/temp.ts"

/** Only secrets that the rules find must be gone. The others are counted in redact.test.ts. */
const detected = plant(7, 8).filter(
  (planted) => leakOf(planted, redactText(planted.text, planted.key)) === undefined && planted.key === undefined,
)

test("no byte of a detected secret reaches any file, compressed or not", async () => {
  const home = tempDir()
  writeTranscript(home, detected)
  const dex = await open(home)
  await syncHistory(dex.deps)
  expect(detected.length).toBeGreaterThan(1000)
  await expectNoLeak(dex, home)
})

test("text that was stored under older rules is redacted again, even if its source is gone", async () => {
  const home = tempDir()
  const dex = await open(home)
  const some = detected.slice(0, 300)
  const records = some.map((planted, i) => recordOf(planted, i))
  const write = unit("-code-api/old.jsonl", [
    conversation(
      "old",
      some.map((planted, i) => textMessage(`k${i}`, planted.text)),
    ),
  ])
  await dex.deps.store.writeUnit({
    ...write,
    redaction_version: 0,
    raw: { mode: "append", live: packLines(records.map((record) => JSON.stringify(record))), left: [] },
  })
  await dex.deps.index.follow(dex.deps.store)
  await syncHistory(dex.deps, { redactAgain: true })
  expect((await dex.deps.store.stats()).conversations).toBeGreaterThan(0)
  await expectNoLeak(dex, home)
})

test("text that was stored under older rules is redacted again when its transcript grows", async () => {
  const home = tempDir()
  const path = writeTranscript(home, detected.slice(0, 50))
  const dex = await open(home)
  await syncHistory(dex.deps)
  const [key] = (await dex.deps.store.knownUnits("claude_code")).keys()
  const known = await dex.deps.store.knownUnit("claude_code", key!)
  const leaky = recordOf(detected[60]!, 999)
  await dex.deps.store.writeUnit({
    ...unit(known!.key, [conversation("11111111-1111-4111-8111-111111111111", [textMessage("x", detected[60]!.text)])]),
    cursor: known!.cursor,
    connector_version: claudeCodeConnector.version,
    redaction_version: 0,
    raw: { mode: "append", live: packLines([JSON.stringify(leaky)]), left: [] },
  })
  writeFileSync(path, `${readFileSync(path, "utf8")}${JSON.stringify(recordOf(detected[70]!, 1000))}\n`)
  await syncHistory(dex.deps)
  expect((await dex.deps.store.rawLines("claude_code", known!.key, "live")).length).toBe(52)
  await expectNoLeak(dex, home)
})

test("a secret that an older version missed because of colours is redacted again, in the history and in the index", async () => {
  const home = tempDir()
  const dex = await open(home)
  const value = random(12).of("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", 32)
  const text = `\u001b[32mDB_PASSWORD\u001b[0m=${value} zebrafinch`
  const record = recordOf({ text } as Planted, 0)
  await dex.deps.store.writeUnit({
    ...unit("-code-api/old.jsonl", [conversation("old", [textMessage("k0", text)])]),
    connector_version: claudeCodeConnector.version,
    redaction_version: 1,
    raw: { mode: "append", live: packLines([JSON.stringify(record)]), left: [] },
  })
  await dex.deps.index.follow(dex.deps.store)
  await syncHistory(dex.deps)
  expect(JSON.stringify(await dex.deps.store.rawLines("claude_code", "-code-api/old.jsonl", "live"))).toContain(value)
  await syncHistory(dex.deps, { redactAgain: true })
  const raw = JSON.stringify(await dex.deps.store.rawLines("claude_code", "-code-api/old.jsonl", "live"))
  expect(raw).toContain("zebrafinch")
  expect(raw).not.toContain(value)
  const rows = (await dex.deps.store.list({ limit: 10, offset: 0 })).rows
  expect(JSON.stringify(await dex.deps.store.messages(rows[0]!.ref))).not.toContain(value)
  await dex.deps.store.checkpoint()
  dex.deps.index.checkpoint()
  const kept = readdirSync(join(home, ".dex")).map((name) => readFileSync(join(home, ".dex", name), "latin1"))
  expect(kept.some((bytes) => bytes.toLowerCase().includes(value.toLowerCase()))).toBe(false)
})

async function open(home: string) {
  const dir = join(home, ".dex")
  const store = openStore(join(dir, "history.db"))
  const index = openIndex(join(dir, "index.db"))
  onTestFinished(() => {
    store.close()
    index.close()
  })
  const machine = { home, env: {}, platform: "linux" as const }
  return {
    deps: {
      store,
      index,
      connectors: [claudeCodeConnector],
      machine,
      home: { dir, history: join(dir, "history.db"), lock: join(dir, "sync.lock") },
    },
  }
}

/** A record with the secret in one of these places: a prompt, an answer, a tool's input or output, or a title. */
function recordOf(planted: Planted, i: number): object {
  const common = {
    uuid: `${String(i).padStart(8, "0")}-aaaa-4aaa-8aaa-aaaaaaaaaaaa`,
    parentUuid: null,
    sessionId: "11111111-1111-4111-8111-111111111111",
    timestamp: new Date(1_790_000_000_000 + i * 1000).toISOString(),
    cwd: "/code/api",
    version: "2.1.197",
    isSidechain: false,
  }
  const assistant = (content: object[]) => ({
    ...common,
    type: "assistant",
    message: { id: `msg_${i}`, role: "assistant", model: "m", content, usage: { input_tokens: 1, output_tokens: 1 } },
  })
  switch (i % 5) {
    case 0:
      return { ...common, type: "user", message: { role: "user", content: planted.text } }
    case 1:
      return assistant([{ type: "text", text: planted.text }])
    case 2:
      return assistant([
        { type: "tool_use", id: `t${i}`, name: "Bash", input: { command: planted.text, description: "run" } },
      ])
    case 3:
      return {
        ...common,
        type: "user",
        message: {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: `t${i - 1}`, content: planted.text, is_error: i % 2 === 0 }],
        },
        toolUseResult: { stdout: planted.text, stderr: planted.text, interrupted: false },
      }
    default:
      return assistant([{ type: "thinking", thinking: planted.text, signature: "x" }])
  }
}

function writeTranscript(home: string, planted: Planted[]): string {
  const path = join(home, ".claude", "projects", "-code-api", "11111111-1111-4111-8111-111111111111.jsonl")
  mkdirSync(dirname(path), { recursive: true })
  rmSync(path, { force: true })
  writeFileSync(path, planted.map((secret, i) => `${JSON.stringify(recordOf(secret, i))}\n`).join(""))
  return path
}

async function expectNoLeak({ deps: { store, index } }: Awaited<ReturnType<typeof open>>, home: string): Promise<void> {
  const held: string[] = []
  for (const key of (await store.knownUnits("claude_code")).keys()) {
    held.push(
      ...(await store.rawLines("claude_code", key, "live")),
      ...(await store.rawLines("claude_code", key, "left")),
    )
  }
  for (const row of (await store.list({ limit: 100_000, offset: 0 })).rows) {
    held.push(
      JSON.stringify(row),
      JSON.stringify(await store.messages(row.ref)),
      JSON.stringify(await store.commandsOf(row.ref)),
      JSON.stringify(await store.filesOf(row.ref)),
    )
  }
  await store.checkpoint()
  index.checkpoint()
  for (const entry of readdirSync(join(home, ".dex"), { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) held.push(readFileSync(join(entry.parentPath, entry.name), "latin1"))
  }
  const all = held.join("\n")
  const leaks = detected.filter((planted) =>
    planted.secrets.some((secret) => all.includes(secret) || all.includes(JSON.stringify(secret).slice(1, -1))),
  )
  expect(leaks.map(({ family, place }) => `${family} in ${place}`)).toEqual([])
}
