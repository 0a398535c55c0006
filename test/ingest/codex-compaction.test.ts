import { appendFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { homeOf } from "../agents/contract.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

// Codex may rewrite a rollout in place when it compacts: only its first record, the compaction, and later records
// remain.

const FIXTURE = "test/fixtures/codex/0.166-exec-resumed"
const THREAD = "01a1dc3f-2c49-7272-b9f0-a2eeaedbb7ad"
const FILE = join(".codex/sessions/2026/11/14", `rollout-2026-11-14T22-48-10-${THREAD}.jsonl`)
const SUMMARY = "The readme was read, and the person came back once."

type Line = { type: string; payload: { type?: string; role?: string; content?: { text: string }[] } }

async function genuine() {
  const home = await homeOf(FIXTURE)
  const path = join(home, FILE)
  const lines = readFileSync(path, "utf8").trimEnd().split("\n")
  const write = (kept: string[]) => writeFileSync(path, kept.map((line) => `${line}\n`).join(""))
  return { home, path, lines, write }
}

/** The two records that remain after a compaction. Prompts are copied without their ids; the summary is the last of them. */
function compacted(lines: string[], more: object = {}): string[] {
  const items = lines.map((line) => JSON.parse(line) as Line)
  const prompts = items
    .filter(({ type, payload }) => type === "response_item" && payload.role === "user")
    .map(({ payload }) => ({ ...payload, id: undefined }))
  const prompt = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] })
  const record = {
    timestamp: "2026-11-15T08:00:00.000Z",
    type: "compacted",
    payload: {
      message: SUMMARY,
      replacement_history: [...prompts, prompt(`Another language model started to solve this problem.\n${SUMMARY}`)],
      ...more,
    },
  }
  return [lines[0]!, JSON.stringify(record)]
}

const turn = (id: string, role: string, text: string) =>
  JSON.stringify({
    timestamp: "2026-11-15T09:00:00.000Z",
    type: "response_item",
    payload: {
      ...{ type: "message", role, id: `msg_${id.repeat(20)}` },
      content: [{ type: role === "user" ? "input_text" : "output_text", text }],
    },
  })

async function stored(home: string) {
  const store = openStore(join(home, ".dex", "history.db"))
  try {
    const ref = { source: "codex" as const, id: THREAD }
    const row = (await store.conversation(ref))!
    const messages = await store.messages(ref)
    return {
      row,
      texts: messages.map(({ parts }) => parts.map(({ text }) => text).join("\n")),
      prompts: messages.flatMap(({ parts }) =>
        parts.flatMap(({ origin, text }) => (origin === "person" ? [text] : [])),
      ),
      superseded: messages.filter(({ superseded }) => superseded).length,
      revision: await store.revision(),
    }
  } finally {
    store.close()
  }
}

async function found(home: string, words: string): Promise<number> {
  return JSON.parse((await dex(home, ["search", words, "--json"])).stdout).results.length
}

/** A second sync finds nothing new in it. */
async function expectSettled(home: string): Promise<void> {
  const before = await stored(home)
  await syncHome(home)
  expect(await stored(home)).toEqual(before)
}

test("a rollout rewritten by a compaction keeps its messages in order, its count, title and usage", async () => {
  const { home, lines, write } = await genuine()
  await syncHome(home)
  const before = await stored(home)
  expect(before.row.usage?.input).toBe(400)
  write(compacted(lines))
  await syncHome(home)
  const after = await stored(home)
  expect(after.texts).toEqual([...before.texts, SUMMARY])
  expect(after.superseded).toBe(0)
  expect(after.row).toMatchObject({ title: before.row.title, usage: before.row.usage })
  expect(after.row.message_count).toBe(before.row.message_count + 1)
  expect(after.prompts).toEqual(before.prompts)
  expect(await found(home, "scripted-shell")).toBe(1)
  await expectSettled(home)
})

test("prompts that were not read before a compaction become messages, each once and in order", async () => {
  const { home, lines, write } = await genuine()
  const half = lines.findIndex((line) => line.includes('"task_complete"')) + 1
  write(lines.slice(0, half))
  await syncHome(home)
  const before = await stored(home)
  write(compacted(lines))
  await syncHome(home)
  const after = await stored(home)
  const [second] = after.prompts.slice(before.prompts.length)
  expect(second).toContain("scenario-second")
  expect(after.texts).toEqual([...before.texts, second, SUMMARY])
  expect(after.row).toMatchObject({ title: before.row.title, usage: before.row.usage })
  expect(after.superseded).toBe(0)
  expect(await found(home, "scenario-second")).toBe(1)
  await expectSettled(home)
})

test("a thread that continues after two rewrites by compactions is one conversation", async () => {
  const { home, path, lines, write } = await genuine()
  await syncHome(home)
  const before = await stored(home)
  write([...compacted(lines), turn("a", "user", "Where were we, aardvark?"), turn("b", "assistant", "At the readme.")])
  await syncHome(home)
  appendFileSync(path, `${turn("c", "user", "Then rename it.")}\n`)
  await syncHome(home)
  const after = await stored(home)
  const texts = ["Where were we, aardvark?", "At the readme.", "Then rename it."]
  expect(after.texts).toEqual([...before.texts, SUMMARY, ...texts])
  expect(after.row).toMatchObject({ title: before.row.title, usage: before.row.usage })
  expect(await found(home, "aardvark")).toBe(1)
  await expectSettled(home)

  const again = compacted([...lines, turn("a", "user", texts[0]!), turn("c", "user", texts[2]!)], {
    message: "Renamed.",
  })
  write([...again, turn("d", "user", "Now commit.")])
  await syncHome(home)
  const last = await stored(home)
  expect(last.texts).toEqual([...after.texts, "Renamed.", "Now commit."])
  expect(last.superseded).toBe(0)
  expect(last.row).toMatchObject({ title: before.row.title, usage: before.row.usage })
  await expectSettled(home)
})

test("a rollout that is read only after the rewrite has the prompts that the compaction kept", async () => {
  const whole = await genuine()
  await syncHome(whole.home)
  const { prompts, row } = await stored(whole.home)
  const { home, lines, write } = await genuine()
  write(compacted(lines))
  await syncHome(home)
  const after = await stored(home)
  expect(after.prompts).toEqual(prompts)
  expect(after.texts.at(-1)).toBe(SUMMARY)
  expect(after.row.title).toEqual(row.title)
})

test("a compaction with a summary that only Codex can read keeps the prompts, and makes none of them a summary", async () => {
  const { home, lines, write } = await genuine()
  const [meta, record] = compacted(lines, { message: "" })
  const { payload, ...rest } = JSON.parse(record!)
  const history = [...payload.replacement_history.slice(0, -1), { type: "compaction", encrypted_content: "opaque" }]
  write([meta!, JSON.stringify({ ...rest, payload: { ...payload, replacement_history: history } })])
  await syncHome(home)
  const after = await stored(home)
  expect(after.prompts).toHaveLength(2)
  expect(after.texts).toHaveLength(2)
})

test("a prompt shortened by a compaction is not repeated, and one written twice stays twice", async () => {
  const { home, lines, write } = await genuine()
  const long = `Begin here ${"and so on ".repeat(50)} end there`
  const twice = [turn("e", "user", "go on"), turn("f", "assistant", "Done."), turn("g", "user", "go on")]
  write([...lines, turn("h", "user", long), ...twice])
  await syncHome(home)
  const before = await stored(home)
  const short = turn("h", "user", "Begin here and so on…120 tokens truncated…and so on  end there")
  write(compacted([...lines, short, ...twice, turn("i", "user", "go on")]))
  await syncHome(home)
  const after = await stored(home)
  expect(after.prompts).toEqual([...before.prompts, "go on"])
})
