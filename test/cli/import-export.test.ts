import { execFileSync } from "node:child_process"
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import type { OutputOf } from "../../src/core/tool.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { importHistory } from "../../src/tools/backup/backup.ts"
import { random } from "../redact/secrets.ts"
import { runKilledAt } from "../support/killed-at.ts"
import { syncedOnce } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"
import { type Packed, zipOf } from "../support/zip.ts"

type Turn = { id: string; parent: string | null; role?: string; text?: string; at?: number }

const FIXTURES = "test/fixtures"
const T = 1_790_000_000
const id = (n: number) => `6a0c1f2e-0000-4000-8000-${String(n).padStart(12, "0")}`

/** A conversation as ChatGPT exports it. */
function chat(n: number, turns: Turn[], more: Record<string, unknown> = {}) {
  const mapping = turns.map(({ id, parent, role = "user", text, at = T }) => [
    id,
    {
      ...{ id, parent, children: [] },
      message: {
        id,
        author: { role },
        create_time: at,
        content: { content_type: "text", parts: [text ?? id] },
        metadata: {},
      },
    },
  ])
  const updated = Math.max(...turns.map(({ at = T }) => at))
  return {
    ...{
      conversation_id: id(n),
      title: `Chat ${n}`,
      create_time: T,
      update_time: updated,
      current_node: turns.at(-1)!.id,
    },
    mapping: Object.fromEntries(mapping),
    ...more,
  }
}

const ask = (text: string) => chat(1, [{ id: "a", parent: null, text }])
const jsonOf = (...items: unknown[]) => JSON.stringify(items)
const conversations = (content: string | Buffer): Packed => ({ name: "conversations.json", content })

function fileOf(bytes: Buffer | string, name = "export.zip", folder = tempDir()): string {
  const path = join(folder, name)
  writeFileSync(path, bytes)
  return path
}

type Imported = Partial<OutputOf<typeof importHistory>> & { code: number | null; stderr: string }

async function imported(home: string, file: string): Promise<Imported> {
  const { code, stdout, stderr } = await dex(home, ["import", file, "--json"])
  return { code, stderr, ...(stdout === "" ? {} : JSON.parse(stdout)) }
}

const stats = async (home: string): Promise<Record<string, number>> =>
  JSON.parse((await dex(home, ["doctor", "stats", "--json"])).stdout).sources

/** The files of dex that contain a text. */
function leakIn(home: string, text: string): string[] {
  const files = readdirSync(join(home, ".dex"), { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  return files
    .filter(({ parentPath, name }) => readFileSync(join(parentPath, name)).includes(text))
    .map(({ name }) => name)
}

describe("what services export", () => {
  test("is imported from a zip file, once, and can be searched", async () => {
    const home = tempDir()
    const fixture = (name: string) => readFileSync(join(FIXTURES, name))
    const file = fileOf(
      zipOf([
        { name: "user.json", content: "{}" },
        {
          name: "export/conversations-000.json",
          content: fixture("chatgpt/2026-branches-tools/home/conversations-000.json"),
        },
        {
          name: "export/conversations-001.json",
          content: fixture("chatgpt/2026-branches-tools/home/conversations-001.json"),
        },
        { name: "chat.html", content: "<html>", stored: true },
      ]),
    )
    expect(await imported(home, file)).toMatchObject({ code: 0, services: ["chatgpt"], conversations: 2, messages: 14 })
    expect((await dex(home, ["search", "total_cmp floats"])).stdout).toContain("Sort floats in Rust")
    expect(await imported(home, file)).toMatchObject({ code: 0, conversations: 0, messages: 0, left_out: [] })
    await syncHome(home)
    const { sources } = JSON.parse((await dex(home, ["doctor", "sources", "--json"])).stdout)
    const listed = sources.find(({ source }: { source: string }) => source === "chatgpt")
    expect(listed).toMatchObject({ kept: 2, archived: 0 })
    expect(await stats(home)).toEqual({ chatgpt: 2 })
    expect(
      (await dex(home, ["resume", `chatgpt:${id(1)}`])).stdout +
        (await dex(home, ["resume", `chatgpt:${id(1)}`])).stderr,
    ).toContain(`dex show chatgpt:${id(1)}`)
    expect((await dex(home, ["doctor", "sources"])).stdout).toMatch(/^chatgpt$/m)
  })

  test("is imported from the unpacked file of each service", async () => {
    const home = tempDir()
    for (const [file, service, conversations] of [
      ["claude_ai/2026-branches-tools/home/conversations.json", "claude_ai", 2],
      ["gemini_app/2026-days/home/MyActivity.json", "gemini_app", 3],
    ] as const)
      expect(await imported(home, join(FIXTURES, file).replace(/^/, `${process.cwd()}/`))).toMatchObject({
        ...{ code: 0, services: [service], conversations },
      })
    expect(await stats(home)).toEqual({ claude_ai: 2, gemini_app: 3 })
    expect((await dex(home, ["show", "gemini_app:2026-02-02"])).stdout).toContain("Use `sorted`")
  })

  test("keeps what a later export adds, and an older one takes nothing away", async () => {
    const home = tempDir()
    const first = { id: "a", parent: null, text: "a walrus question" }
    const second = { id: "b", parent: "a", role: "assistant", text: "a walrus answer", at: T + 100 }
    const [older, newer] = [
      fileOf(jsonOf(chat(1, [first])), "o.json"),
      fileOf(jsonOf(chat(1, [first, second])), "n.json"),
    ]
    expect(await imported(home, older)).toMatchObject({ messages: 1 })
    expect(await imported(home, newer)).toMatchObject({ conversations: 1, messages: 1 })
    expect(await imported(home, older)).toMatchObject({ conversations: 0, messages: 0 })
    const shown = (await dex(home, ["show", `chatgpt:${id(1)}`])).stdout
    expect(shown.match(/walrus/g)).toHaveLength(2)
    expect(shown).not.toContain("superseded")
  })

  test("is redacted before anything is written, and counted by dex doctor secrets", async () => {
    const home = tempDir()
    const secret = `${"gh"}p_${random(5).of("abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789", 36)}`
    const file = fileOf(zipOf([conversations(jsonOf(ask(`Use ${secret}, please`)))]))
    await imported(home, file)
    expect(leakIn(home, secret)).toEqual([])
    const { files } = JSON.parse((await dex(home, ["doctor", "secrets", "--json"])).stdout)
    expect(files).toEqual([expect.objectContaining({ source: "chatgpt", path: file, state: "present", secrets: 1 })])
  })

  test("an import that is killed at any point leaves complete conversations, nothing unredacted, and can be repeated", async () => {
    const own = tempDir()
    const secret = `${"gh"}p_${random(6).of("abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789", 36)}`
    const turns = [
      { id: "a", parent: null, text: `a walrus with ${secret}` },
      { id: "b", parent: "a", role: "assistant", text: "an answer" },
    ]
    const file = fileOf(zipOf([conversations(jsonOf(...[1, 2, 3, 4, 5, 6].map((n) => chat(n, turns))))]))
    const counts = new Set<number>()
    for (let n = 1, ended = false; !ended; n += 2) {
      ended = await runKilledAt(own, ["import", file], n, "blocks")
      expect(leakIn(own, secret), `killed at ${n}`).toEqual([])
      const store = openStore(join(own, ".dex", "history.db"))
      const { rows } = await store.list({ limit: 100, offset: 0 })
      store.close()
      counts.add(rows.length)
      expect(
        rows.filter(({ message_count }) => message_count !== 2),
        `killed at ${n}`,
      ).toEqual([])
    }
    expect([...counts].filter((count) => count > 0 && count < 6).length).toBeGreaterThan(0)
    expect([...counts].at(-1)).toBe(6)
  })

  test("stays forgotten once it was forgotten", async () => {
    const home = tempDir()
    const file = fileOf(jsonOf(ask("a walrus question")), "c.json")
    await imported(home, file)
    await dex(home, ["forget", `chatgpt:${id(1)}`, "--yes"])
    expect(await imported(home, file)).toMatchObject({ conversations: 0, messages: 0, forgotten: 1 })
    expect((await dex(home, ["search", "walrus"])).code).toBe(1)
  })

  test("as a page instead of JSON is refused with the reason", async () => {
    const file = fileOf(zipOf([{ name: "Takeout/My Activity/Gemini Apps/MyActivity.html", content: "<html>" }]))
    expect(await imported(tempDir(), file)).toMatchObject({ code: 2, stderr: expect.stringContaining("choose JSON") })
  })
})

/** A home with a history, which no attack may change. */
const home = syncedOnce()
const stateOfHome = async () => [await stats(home), readdirSync(home).sort(), readdirSync(join(home, ".dex")).sort()]

describe("a zip file that was made to do harm", () => {
  const good = conversations(jsonOf(ask("a walrus question")))
  const megabytes = (count: number) => Buffer.alloc(count << 20, " ")
  const refused: [what: string, make: () => Buffer, why: RegExp][] = [
    [
      "a bomb",
      () => zipOf([conversations(Buffer.concat([Buffer.from("["), megabytes(64), Buffer.from("]")]))]),
      /zip bomb/,
    ],
    [
      "a bomb that lies about its size",
      () => zipOf([{ ...conversations(megabytes(64)), bytes: 100 }]),
      /larger than it says/,
    ],
    [
      "entries that share their bytes",
      () => zipOf([good, ...[1, 2, 3].map((n) => ({ ...good, name: `conversations-${n}.json`, offset: 0 }))]),
      /share the same bytes/,
    ],
    ["an encrypted entry", () => zipOf([{ ...good, flags: 1 }]), /is encrypted/],
    ["an unknown compression", () => zipOf([{ ...good, method: 12 }]), /compressed in a way/],
    ["a broken compression", () => zipOf([{ ...good, data: Buffer.from("\xff\xff\xff\xff", "latin1") }]), /is damaged/],
    [
      "another name in the file than in the list",
      () => zipOf([{ ...good, nameInFile: "something-else.js" }]),
      /is not where/,
    ],
    ["a truncated file", () => zipOf([good]).subarray(0, -30), /end is missing/],
    ["a list beyond the end of the file", () => zipOf([good], { directoryBytes: 1 << 30 }), /damaged list/],
    ["a list at the wrong place", () => zipOf([good], { directoryOffset: 3 }), /damaged list/],
    [
      "large numbers that are no places",
      () => zipOf([good], { zip64: true, directoryOffset: 2 ** 52 }),
      /damaged list/,
    ],
    ["an entry far beyond the end", () => zipOf([{ ...good, large: true, offset: 2 ** 50 }]), /is incomplete/],
    [
      "too many files of the name",
      () => zipOf([...Array(1_001)].map((_, n) => ({ ...good, name: `${n}/conversations.json` }))),
      /more than 1000/,
    ],
    ["no entries", () => zipOf([]), /not an export/],
    ["a zip file in a zip file", () => zipOf([conversations(zipOf([good]))]), /is not a list in JSON/],
    ["a link", () => zipOf([{ ...conversations("/etc/passwd"), mode: 0o120777 }]), /is not a list in JSON/],
    ["an object in place of a list", () => zipOf([conversations("{}")]), /is not a list in JSON/],
    [
      "UTF-16",
      () => zipOf([conversations(Buffer.from(`\ufeff${jsonOf(ask("hello"))}`, "utf16le"))]),
      /is not a list in JSON/,
    ],
    ["an empty file in it", () => zipOf([conversations("")]), /is not a list in JSON/],
    ["a list of something else", () => zipOf([conversations("[1, {}]")]), /only items that are no conversation/],
    ["a list without an end", () => zipOf([conversations("[")]), /end is missing/],
  ]
  test.each(refused)("%s is refused, with the reason, and changes nothing", async (_, make, why) => {
    const state = await stateOfHome()
    const { code, stderr } = await imported(home, fileOf(make()))
    expect([code, stderr]).toEqual([2, expect.stringMatching(why)])
    expect(await stateOfHome()).toEqual(state)
  })

  test("names are never paths: nothing is written where they point", async () => {
    const folder = tempDir()
    const names = [
      "../../conversations.json",
      "/conversations.json",
      "C:\\x\\/conversations.json",
      "a\0b/conversations.json",
    ]
    const own = tempDir()
    const files = names.map((name, n) => ({ name, content: jsonOf(chat(n, [{ id: "a", parent: null }])) }))
    expect(await imported(own, fileOf(zipOf(files), "export.zip", folder))).toMatchObject({ code: 0, conversations: 4 })
    expect(readdirSync(folder)).toEqual(["export.zip"])
    expect(readdirSync(own)).toEqual([".dex"])
  })

  test("control characters in a name reach no terminal", async () => {
    const file = fileOf(zipOf([good, { name: "\u001b]0;owned\u0007/conversations.json", content: "no" }]))
    const { stdout, stderr } = await dex(tempDir(), ["import", file])
    expect(stderr.replaceAll(/\s+/g, " ")).toContain("is not a list in JSON")
    expect(stdout + stderr).not.toMatch(/[\u0007\u001b]/)
  })

  test.each([
    ["a wrong checksum", { crc: 1 }, "its checksum is wrong"],
    ["a size that is too large", { bytes: 50_000 }, "is shorter than it says"],
  ])("%s is reported, and what was read before it is kept", async (_, lie, why) => {
    const own = tempDir()
    const { left_out } = await imported(own, fileOf(zipOf([{ ...good, ...lie }])))
    expect(left_out).toEqual([{ what: expect.stringContaining(why), count: 1 }])
    expect(await stats(own)).toEqual({ chatgpt: 1 })
  })

  test("zip64, a comment and a byte order mark are read", async () => {
    const file = fileOf(
      zipOf([{ ...conversations(`\ufeff${jsonOf(ask("hello"))}`), large: true }], { zip64: true, comment: "PK" }),
    )
    expect(await imported(tempDir(), file)).toMatchObject({ code: 0, conversations: 1 })
  })

  test("a million files are looked through", async () => {
    const others = [...Array(65_000)].map((_, n) => ({ name: `${n}`, content: "", offset: 0 }))
    const chunk = zipOf([...others])
    const list = chunk.subarray(30 * 0, chunk.length - 22)
    const one = zipOf([good])
    const own = tempDir()
    const end = Buffer.from(one.subarray(one.length - 22))
    const dataEnd = end.readUInt32LE(16)
    const lists = [one.subarray(dataEnd, one.length - 22), ...[...Array(16)].map(() => list)]
    const bytes = lists.reduce((sum, { length }) => sum + length, 0)
    end.writeUInt32LE(bytes, 12)
    const file = fileOf(Buffer.concat([one.subarray(0, dataEnd), ...lists, end]))
    expect(await imported(own, file)).toMatchObject({ code: 0, conversations: 1 })
  })
})

describe("JSON that is not what it says", () => {
  const left = async (own: string, text: string) => {
    const { left_out, conversations } = await imported(own, fileOf(text, "c.json"))
    return [conversations, left_out]
  }

  test("items that are no conversations are counted, and the others read", async () => {
    const odd = [
      1,
      null,
      "x",
      [],
      {},
      { mapping: [] },
      { mapping: {} },
      { id: "../../x", mapping: { a: {} } },
      { chat_messages: 1 },
    ]
    expect(await left(tempDir(), jsonOf(...odd, ask("hello")))).toEqual([
      1,
      [{ what: "items that are no conversation", count: odd.length }],
    ])
  })

  test("one damaged message or conversation does not stop the others", async () => {
    const text = jsonOf(
      chat(2, [
        { id: "a", parent: null },
        { id: "b", parent: "a" },
      ]),
      ask("hello"),
    )
    const withNaN = text.replace(`"create_time":${T},"content"`, '"create_time":NaN,"content"')
    expect(await left(tempDir(), withNaN)).toEqual([2, [{ what: "damaged messages", count: 1 }]])
    expect(await left(tempDir(), text.replace('"title":"Chat 2"', '"title":'))).toEqual([
      1,
      [{ what: "damaged conversations", count: 1 }],
    ])
  })

  test("an incomplete file is read up to its end, which is reported", async () => {
    const [conversations, left_out] = await left(
      tempDir(),
      jsonOf(ask("hello"), chat(2, [{ id: "a", parent: null }])).slice(0, -40),
    )
    expect([conversations, left_out]).toEqual([1, [{ what: expect.stringContaining("its end is missing"), count: 1 }]])
  })

  test("messages that follow each other in a circle, and very long branches, are all kept", async () => {
    const own = tempDir()
    const circle = chat(1, [
      { id: "a", parent: "b" },
      { id: "b", parent: "a" },
      { id: "c", parent: "c" },
    ])
    const long = chat(
      2,
      [...Array(20_000)].map((_, n) => ({ id: `n${n}`, parent: n === 0 ? null : `n${n - 1}` })),
    )
    const wide = chat(
      3,
      [...Array(20_000)].map((_, n) => ({ id: `n${n}`, parent: n === 0 ? null : "n0" })),
    )
    expect(await imported(own, fileOf(jsonOf(circle, long, wide), "c.json"))).toMatchObject({
      conversations: 3,
      messages: 40_003,
    })
  })

  test("a million messages, and a hundred million characters, in one conversation are left out", async () => {
    const own = tempDir()
    const nodes = (count: number) =>
      `{"id":"${id(1)}","mapping":{${[...Array(count)].map((_, n) => `"${n}":{}`).join(",")}}}`
    const dense = `{"id":"${id(1)}","x":[${"[],".repeat(2_000_000)}1]}`
    const long = JSON.stringify(chat(2, [{ id: "a", parent: null, text: "x".repeat(100 << 20) }]))
    const fields = `{${[...Array(2_000)].map((_, n) => `"${n}":1`).join(",")}}`
    const [conversations, left_out] = await left(
      own,
      `[${nodes(60_000)},${nodes(1_000_000)},${dense},${long},${fields},${JSON.stringify(ask("hello"))}]`,
    )
    expect([conversations, left_out]).toEqual([
      1,
      [
        { what: "conversations with more than 50000 messages", count: 1 },
        { what: "conversations with more than 32 MB or 1000000 values", count: 3 },
        { what: "damaged conversations", count: 1 },
      ],
    ])
  })

  test("nesting without end is left out", async () => {
    const deep = `{"id":"${id(1)}","deep":${"[".repeat(100_000)}${"]".repeat(100_000)},"mapping":{"a":{}}}`
    const deepMessage = `{"id":"${id(2)}","mapping":{"a":{"deep":${"[".repeat(9_000)}${"]".repeat(9_000)}}}}`
    expect(await left(tempDir(), `[${deep},${deepMessage},${JSON.stringify(ask("hello"))}]`)).toEqual([
      1,
      [
        { what: "damaged conversations", count: 1 },
        { what: "damaged messages", count: 1 },
        { what: "items that are no conversation", count: 1 },
      ],
    ])
  })

  test("impossible times, control characters and inherited names do no harm", async () => {
    const own = tempDir()
    const odd = chat(1, [{ id: "__proto__", parent: "constructor", text: "\u001b[31mred\u0007" }], {
      ...{ title: "\u001b]0;owned\u0007", create_time: 1e300, update_time: -5, current_node: { a: 1 } },
    })
    expect(await imported(own, fileOf(jsonOf(odd), "c.json"))).toMatchObject({ code: 0, conversations: 1 })
    const shown = await dex(own, ["show", `chatgpt:${id(1)}`])
    expect(shown.stdout).toContain("red")
    expect(shown.stdout + (await dex(own, ["list"])).stdout).not.toMatch(/[\u0007\u001b]/)
  })
})

describe("a file that is none", () => {
  test.skipIf(process.platform === "win32")(
    "a pipe, a device, a folder and a broken link are refused at once",
    async () => {
      const folder = tempDir()
      execFileSync("mkfifo", [join(folder, "pipe.zip")])
      mkdirSync(join(folder, "folder.zip"))
      symlinkSync(join(folder, "nothing"), join(folder, "link.zip"))
      for (const path of [join(folder, "pipe.zip"), "/dev/zero", join(folder, "folder.zip"), join(folder, "link.zip")])
        expect([path, (await imported(home, path)).code]).toEqual([path, 2])
    },
  )

  test("a huge file of nothing is refused at once", async () => {
    const path = join(tempDir(), "huge.zip")
    const fd = openSync(path, "w")
    ftruncateSync(fd, 2 ** 40)
    closeSync(fd)
    expect((await imported(home, path)).code).toBe(2)
  })
})
