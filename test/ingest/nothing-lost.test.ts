import { appendFileSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { claudeCodeConnector } from "../../src/agents/claude-code/connector.ts"
import { MAX_VALUES } from "../../src/core/record.ts"
import { openReader, UnitTooLargeError } from "../../src/ingest/reader.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

const SESSION = "11111111-1111-4111-8111-111111111111"
const REF = { source: "claude_code" as const, id: SESSION }

async function sync(home: string, env: Record<string, string> = {}): Promise<string> {
  const { code, stdout, stderr } = await dex(home, ["sync"], env)
  expect(code, stderr).toBe(0)
  return stdout + stderr
}

/** The texts of a conversation's messages, in order; superseded ones in brackets. */
async function words(home: string, ref = REF): Promise<string[]> {
  const store = openStore(join(home, ".dex", "history.db"))
  try {
    const messages = await store.messages(ref)
    return messages.map(({ parts, superseded }) => (superseded ? `(${parts[0]!.text})` : parts[0]!.text))
  } finally {
    store.close()
  }
}

async function titles(home: string): Promise<string[]> {
  const store = openStore(join(home, ".dex", "history.db"))
  try {
    return (await store.list({ limit: 1000, offset: 0 })).rows.map(({ title }) => title?.text ?? "").sort()
  } finally {
    store.close()
  }
}

async function found(home: string, word: string): Promise<number> {
  return JSON.parse((await dex(home, ["search", word, "--json"])).stdout).total
}

/** Writes a transcript of one session to any path; each message is a word, a minute after the previous one. */
function transcript(
  path: string,
  messages: [word: string, minute: number, cwd?: string][],
  modified = "2026-11-10",
): void {
  mkdirSync(dirname(path), { recursive: true })
  const lines = messages.map(([word, minute, cwd = "/code/api"]) =>
    JSON.stringify({
      type: "user",
      uuid: `${word}-0000-4000-8000-000000000000`,
      parentUuid: null,
      isSidechain: false,
      sessionId: SESSION,
      cwd,
      version: "2.1.197",
      timestamp: new Date(Date.UTC(2026, 10, 3, 10, minute)).toISOString(),
      message: { role: "user", content: word },
    }),
  )
  writeFileSync(path, `${lines.join("\n")}\n`)
  touch(path, modified)
}

function touch(path: string, at: string): void {
  utimesSync(path, new Date(at), new Date(at))
}

describe("the folder an agent works in", () => {
  test.each([[".dex"], [".dex/chat-sessions/2026-11-03-abc"]])(
    "an agent that goes into dex's own folder keeps its conversation: %s",
    async (folder) => {
      const home = tempDir()
      const path = claudeSession(home, { id: SESSION, start: "2026-11-03T10:00:00Z", turns: [{ user: "zebrafinch" }] })
      await sync(home)
      const record = JSON.parse(readFileSync(path, "utf8").trim())
      const later = {
        ...record,
        uuid: "22222222",
        cwd: join(home, folder),
        message: { role: "user", content: "quokka" },
      }
      appendFileSync(path, `${JSON.stringify(later)}\n`)
      await sync(home)
      expect(await words(home)).toEqual(["zebrafinch", "quokka"])
      expect(await found(home, "zebrafinch")).toBe(1)
    },
  )

  test("a conversation that a person began in dex's folder is kept, and an agent that dex started there is not", async () => {
    const home = tempDir()
    const person = "22222222-2222-4222-8222-222222222222"
    claudeSession(home, {
      id: person,
      cwd: join(home, ".dex"),
      start: "2026-11-03T10:00:00Z",
      turns: [{ user: "Why does the hook log say this?" }],
    })
    claudeSession(home, {
      id: SESSION,
      cwd: join(home, ".dex", "chat-sessions", "2026-11-03-abc"),
      start: "2026-11-03T11:00:00Z",
      turns: [{ user: "What did we decide?" }],
    })
    await sync(home)
    expect(await words(home, { source: "claude_code", id: person })).toEqual(["Why does the hook log say this?"])
    expect(await words(home)).toEqual([])
  })
})

describe("a file that is too large", () => {
  test("a tool call with a million values is read without them, and the other calls are read", async () => {
    const home = tempDir()
    const path = claudeSession(home, {
      id: SESSION,
      start: "2026-11-03T10:00:00Z",
      turns: [
        { user: "Draw it" },
        { tool: { name: "mcp__geo__put", input: { points: "PLACE", name: "walrus" }, output: "ok" } },
      ],
    })
    const values = 1_300_000
    writeFileSync(path, readFileSync(path, "utf8").replace('"PLACE"', `[${"[1,2],".repeat(values)}[3,4]]`))
    for (let i = 0; i < 10; i++) {
      claudeSession(home, {
        id: `3333333${i}-1111-4111-8111-111111111111`,
        start: "2026-10-03T10:00:00Z",
        turns: [{ user: `walrus question ${i}` }],
      })
    }
    expect(await sync(home)).toMatch(/Read 11 transcripts of 11/)
    const texts = await words(home)
    expect(texts[1]).toMatch(/^\{"points":"\[dex: about \d+ values not kept: \[\[1,2\],\[1,2\]/)
    expect(texts[1]).toMatch(/"name":"walrus"\}$/)
    expect(texts[1]!.length).toBeLessThan(1000)
    expect(await found(home, "walrus")).toBe(11)
  })

  test("a thread that dies of one file continues with the others, and reports the file", async () => {
    const home = tempDir()
    const dir = join(home, ".dex")
    mkdirSync(dir)
    const large = claudeSession(home, {
      id: SESSION,
      start: "2026-11-03T10:00:00Z",
      turns: Array.from({ length: 400 }, (_, i) => ({
        user: `${i} ${JSON.stringify(Array(MAX_VALUES - 10).fill({}))}`.replace(/^/, ""),
      })),
    })
    // Each line is just below what is thinned: text that is small on disk, and large once it is parsed.
    const lines = readFileSync(large, "utf8").trim().split("\n")
    const list = `[${"{},".repeat(MAX_VALUES - 100)}{}]`
    writeFileSync(large, lines.map((line) => `${line.slice(0, -1)},"toolUseResult":{"rows":${list}}}\n`).join(""))
    for (let i = 0; i < 3; i++)
      claudeSession(home, {
        id: `3333333${i}-1111-4111-8111-111111111111`,
        start: "2026-10-03T10:00:00Z",
        turns: [{ user: `question ${i}` }],
      })
    const store = openStore(join(dir, "history.db"))
    const index = openIndex(join(dir, "index.db"))
    const machine = { home, env: {}, platform: "linux" as const }
    const units = [...claudeCodeConnector.discover(join(home, ".claude"), () => false)].filter((unit) => "key" in unit)
    const deps = {
      store,
      index,
      connectors: [claudeCodeConnector],
      machine,
      home: { dir, history: join(dir, "history.db"), lock: join(dir, "lock") },
    }
    const reader = await openReader(deps, 100 << 20, 0) // as if all were small
    try {
      const read = units.map((unit) => reader.read("claude_code", unit, false).catch((error: Error) => error))
      const outcomes = await Promise.all(read)
      const failed = outcomes.filter((outcome) => outcome instanceof Error)
      expect(failed.map((error) => error instanceof UnitTooLargeError)).toEqual([true])
      expect(failed[0]!.message).toMatch(/too large to read: \d+ MB on disk.*dex will try again/)
      expect(outcomes.filter((outcome) => !(outcome instanceof Error))).toHaveLength(3)
    } finally {
      await reader.close()
      store.close()
      index.close()
    }
  })
})

describe("forgetting one conversation", () => {
  const id = (i: number) => `71111111-1111-4111-8111-11111111110${i}`

  test("keeps the others of the same log, even if the agent trims it later", async () => {
    const home = tempDir()
    const log = join(home, ".claude", "history.jsonl")
    mkdirSync(dirname(log))
    const prompt = (i: number) =>
      JSON.stringify({
        display: `pangolin ${i}`,
        pastedContents: {},
        timestamp: 1_760_000_000_000 + i * 1000,
        project: "/p",
        sessionId: id(i),
      })
    const prompts = Array.from({ length: 10 }, (_, i) => prompt(i))
    writeFileSync(log, `${prompts.join("\n")}\n`)
    await sync(home)
    expect((await dex(home, ["forget", `claude_code:${id(3)}`, "--yes"])).code).toBe(0)
    const store = openStore(join(home, ".dex", "history.db"))
    const records = await store.rawLines("claude_code", ".claude/history.jsonl", "live")
    store.close()
    expect(records).toHaveLength(9)
    expect(records.join()).not.toContain("pangolin 3")
    writeFileSync(log, `${prompts.slice(8).join("\n")}\n`)
    await sync(home)
    const others = [0, 1, 2, 4, 5, 6, 7, 8, 9].map((i) => `Pangolin ${i}`)
    expect(await titles(home)).toEqual(others)
    writeFileSync(log, `${prompts.join("\n")}\n`)
    await sync(home)
    expect(await titles(home)).toEqual(others)
  })

  test("a transcript with withheld records keeps its messages when it is rewritten", async () => {
    const home = tempDir()
    const path = join(home, ".claude", "projects", "-p", `${SESSION}.jsonl`)
    transcript(path, [
      ["alpha", 0],
      ["beta", 1],
    ])
    const sidechain = {
      type: "user",
      uuid: "s1",
      parentUuid: null,
      isSidechain: true,
      agentId: "sub1",
      sessionId: SESSION,
      cwd: "/code/api",
      timestamp: "2026-11-03T10:05:00Z",
      message: { role: "user", content: "gamma" },
    }
    appendFileSync(path, `${JSON.stringify(sidechain)}\n`)
    await sync(home)
    const store = openStore(join(home, ".dex", "history.db"))
    const sub = (await store.list({ limit: 10, offset: 0 })).rows.find(({ kind }) => kind === "subagent")!
    store.close()
    expect((await dex(home, ["forget", `claude_code:${sub.ref.id}`, "--yes"])).code).toBe(0)
    transcript(path, [["delta", 2]], "2026-11-11")
    await sync(home)
    expect(await words(home)).toEqual(["(alpha)", "(beta)", "delta"])
    expect(await found(home, "gamma")).toBe(0)
  })
})

describe("two files of one session", () => {
  const at = (home: string, project: string, root = ".claude") =>
    join(home, root, "projects", project, `${SESSION}.jsonl`)

  test.each([
    ["the older first", "-p", "-q"],
    ["the newer first", "-q", "-p"],
  ])("are shown together, %s, and deleting one loses nothing", async (_, first, second) => {
    const home = tempDir()
    const write = {
      "-p": () =>
        transcript(
          at(home, "-p"),
          [
            ["narwhal", 0],
            ["osprey", 2],
            ["puffin", 4],
          ],
          "2026-11-10",
        ),
      "-q": () =>
        transcript(
          at(home, "-q"),
          [
            ["quail", 1],
            ["osprey", 2],
            ["raven", 5],
          ],
          "2026-11-11",
        ),
    }
    write[first as "-p"]()
    await sync(home)
    write[second as "-p"]()
    await sync(home)
    const all = ["narwhal", "quail", "osprey", "puffin", "raven"]
    expect(await words(home)).toEqual(all)
    expect(await sync(home)).toMatch(/Nothing new/)
    rmSync(at(home, "-q"))
    await sync(home)
    expect(await words(home)).toEqual(all)
    const store = openStore(join(home, ".dex", "history.db"))
    expect(await store.conversation(REF)).toMatchObject({ archived: false, path: at(home, "-p") })
    store.close()
    expect(await sync(home)).toMatch(/Nothing new/)
  })

  test("a partial copy with a newer date removes nothing", async () => {
    const home = tempDir()
    transcript(
      at(home, "-p"),
      [
        ["narwhal", 0],
        ["osprey", 1],
        ["puffin", 2],
      ],
      "2026-11-10",
    )
    await sync(home)
    transcript(at(home, "-backup"), [["narwhal", 0]], "2026-11-12")
    await sync(home)
    expect(await words(home)).toEqual(["narwhal", "osprey", "puffin"])
    appendFileSync(at(home, "-p"), readFileSync(at(home, "-backup"), "utf8").replaceAll("narwhal", "heron"))
    touch(at(home, "-p"), "2026-11-13")
    await sync(home)
    expect((await words(home)).sort()).toEqual(["heron", "narwhal", "osprey", "puffin"])
  })

  test("in two roots, under the same name, are both read", async () => {
    const home = tempDir()
    transcript(at(home, "-p"), [["narwhal", 0]])
    await sync(home)
    transcript(at(home, "-p", ".config/claude"), [
      ["narwhal", 0],
      ["osprey", 1],
    ])
    await sync(home)
    expect(await words(home)).toEqual(["narwhal", "osprey"])
    expect(await sync(home)).toMatch(/Nothing new/)
    appendFileSync(at(home, "-p"), readFileSync(at(home, "-p"), "utf8").replaceAll("narwhal", "puffin"))
    await sync(home)
    rmSync(at(home, "-p"))
    await sync(home)
    expect((await words(home)).sort()).toEqual(["narwhal", "osprey", "puffin"])
    expect(await sync(home)).toMatch(/Nothing new/)
  })

  test("the prompt logs of two configuration folders are both read", async () => {
    const home = tempDir()
    for (const [root, word] of [
      ["a", "narwhal"],
      ["b", "osprey"],
    ] as const) {
      const log = join(home, root, ".claude", "history.jsonl")
      mkdirSync(dirname(log), { recursive: true })
      writeFileSync(
        log,
        `${JSON.stringify({ display: word, timestamp: 1_760_000_000_000, project: "/p", sessionId: `session-${word}` })}\n`,
      )
    }
    await sync(home, { CLAUDE_CONFIG_DIR: `${home}/a/.claude,${home}/b/.claude` })
    expect(await titles(home)).toEqual(["Narwhal", "Osprey"])
  })

  test("two homes that share one history do not pile up copies", async () => {
    const home = tempDir()
    const logs = ["host", "container"].map((name) => join(home, name))
    for (const [i, folder] of logs.entries()) {
      mkdirSync(folder)
      const prompts = Array.from({ length: 30 }, (_, n) => ({
        display: `prompt ${i} ${n}`,
        timestamp: 1_760_000_000_000 + n,
        project: "/p",
        sessionId: `session-${i}`,
      }))
      writeFileSync(join(folder, "history.jsonl"), prompts.map((prompt) => `${JSON.stringify(prompt)}\n`).join(""))
    }
    for (let round = 0; round < 6; round++) {
      rmSync(join(home, ".claude"), { recursive: true, force: true })
      cpSync(logs[round % 2]!, join(home, ".claude"), { recursive: true })
      touch(join(home, ".claude", "history.jsonl"), `2026-11-1${round}`)
      await sync(home)
    }
    const store = openStore(join(home, ".dex", "history.db"))
    const count = async (kind: "live" | "left") =>
      (await store.rawLines("claude_code", ".claude/history.jsonl", kind)).length
    expect([await count("live"), await count("left")]).toEqual([30, 30])
    store.close()
  })

  test("a file that moved to another folder remains the same unit", async () => {
    const home = tempDir()
    transcript(at(home, "-p"), [["narwhal", 0]])
    await sync(home)
    mkdirSync(dirname(at(home, "-p", ".config/claude")), { recursive: true })
    renameSync(at(home, "-p"), at(home, "-p", ".config/claude"))
    await sync(home)
    const store = openStore(join(home, ".dex", "history.db"))
    expect((await store.knownUnits("claude_code")).size).toBe(1)
    expect((await store.conversation(REF))?.archived).toBe(false)
    store.close()
  })
})

test("files that an older dex read are read again once, reported in one line, and nothing is new or lost", async () => {
  const home = tempDir()
  claudeSession(home, {
    id: SESSION,
    start: "2026-11-03T10:00:00Z",
    turns: [{ user: "zebrafinch" }, { assistant: "x" }],
  })
  await sync(home)
  const db = openSqlite(join(home, ".dex", "history.db"))
  db.exec("update unit set connector_version = 2, sum = null")
  db.close()
  expect(await found(home, "zebrafinch")).toBe(1)
  expect(await sync(home)).toMatch(/Read 1 transcript of 1: 0 new messages.*1 transcript was read again, because/s)
  expect(await sync(home)).toMatch(/Nothing new/)
  expect(await words(home)).toEqual(["zebrafinch", "x"])
})
