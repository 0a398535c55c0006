import { zstdDecompressSync } from "node:zlib"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { Effect, Part } from "../../src/core/conversation.ts"
import { createPlacePatterns, maskPlaces } from "../../src/hub-client/for-others.ts"
import {
  createOutgoing,
  DEFAULT_SHARED,
  type OutgoingRules,
  pathInProject,
  sharedId,
} from "../../src/hub-client/outgoing.ts"
import { chunksOf, MAX_CHUNK_PLAIN, maxPlain, unpackChunk } from "../../src/hub-client/wire.ts"
import { redactRecord, redactText } from "../../src/redact/redact.ts"
import type { ConversationRow, StoredMessage } from "../../src/store/history/store.ts"

const SECRET = ["ghp", "Zx8Qm4Lr7Tn2Vb6Kc1Wd9Sf5Hg3Jy0PaQw7E"].join("_")
const THOUGHT = "quietly pondered zanzibar"
const INJECTED = "injected by a hook yamoussoukro"

const row = (more: Partial<ConversationRow> = {}): ConversationRow => ({
  ref: { source: "claude_code", id: "1f3c" },
  kind: "person",
  private: false,
  cwds: ["/home/alice/code/api"],
  project: "/home/alice/code/api",
  models: ["model-a"],
  message_count: 1,
  superseded: false,
  copied_count: 0,
  estimated_tokens: 1,
  text_bytes: 1,
  path: "/home/alice/.claude/projects/-home-alice-work-api/1f3c.jsonl",
  archived: false,
  ...more,
})

const message = (parts: Part[], effects: Effect[] = [], number = 1): StoredMessage => ({
  number,
  role: "user",
  parts,
  effects,
  abandoned: false,
  superseded: false,
  copied: false,
})

const words = (text: string): Part => ({ type: "text", text, origin: "person" })

const rules = (more: Partial<OutgoingRules> = {}): OutgoingRules => ({
  what: DEFAULT_SHARED,
  folders: ["/home/alice/code/api"],
  home: "/home/alice",
  platform: "linux",
  places: createPlacePatterns({ home: "/home/alice", folders: ["/home/alice/code/api"] }),
  ...more,
})

const leave = (parts: Part[], effects: Effect[] = [], more: Partial<OutgoingRules> = {}) =>
  createOutgoing(row(), [message(parts, effects)], [{ number: 1, version: 7, copied: false }], rules(more))

/** Everything that would be sent, as text. */
function bytesOf(outgoing: ReturnType<typeof createOutgoing>): string {
  const chunks = [...chunksOf(outgoing.messages)].map(({ data }) => zstdDecompressSync(data).toString("utf8"))
  return [JSON.stringify(outgoing.head), ...chunks].join("\n")
}

describe("a sent conversation", () => {
  test("includes words, tool calls and results, but neither thinking, images nor text that hooks injected", () => {
    const outgoing = leave([
      words("hello"),
      { type: "thinking", text: THOUGHT, origin: "agent" },
      { type: "tool_call", text: '{"a":1}', origin: "agent", tool: "Bash" },
      { type: "tool_result", text: "ok", origin: "local_tool", is_error: false },
      { type: "image", text: "a picture", origin: "person" },
      { type: "text", text: INJECTED, origin: "injected" },
    ])
    expect(outgoing.messages[0]!.parts.map(({ type }) => type)).toEqual(["text", "tool_call", "tool_result"])
    expect(outgoing.left_out).toEqual({ thinking: 1, images: 1, injected: 1 })
  })

  test("a message that lost all its parts keeps its number", () => {
    const outgoing = leave([{ type: "thinking", text: THOUGHT, origin: "agent" }])
    expect(outgoing.messages).toMatchObject([{ number: 1, parts: [] }])
  })

  test("a message that is sent differently gets another version, and an unchanged one keeps its version", () => {
    const parts: Part[] = [words("hello"), { type: "thinking", text: THOUGHT, origin: "agent" }]
    const [plain, again, more] = [
      leave(parts),
      leave(parts),
      leave(parts, [], { what: ["said", "called", "returned", "thinking"] }),
    ].map((outgoing) => outgoing!.messages[0]!.version)
    expect(again).toBe(plain)
    expect(more).not.toBe(plain)
    const newer = createOutgoing(row(), [message(parts)], [{ number: 1, version: 8, copied: false }], rules())
    expect(newer.messages[0]!.version).toBeGreaterThan(plain!)
  })

  test("files inside the project have paths relative to it; other files are not named", () => {
    const file = (path: string): Effect => ({ type: "file", path, action: "edited" })
    const outgoing = leave(
      [
        {
          type: "tool_result",
          text: "",
          origin: "local_tool",
          is_error: false,
          hunks: ["/home/alice/code/api/src/a.ts", "/etc/hosts"].map((path) => ({
            path,
            old_start: 1,
            old_lines: 1,
            new_start: 1,
            new_lines: 1,
            lines: ["-a", "+b"],
          })),
        },
      ],
      ["/home/alice/code/api/src/a.ts", "src/b.ts", "/home/alice/.ssh/config", "../other/c.ts", "/etc/hosts"].map(file),
    )
    expect(outgoing.messages[0]!.effects).toEqual([file("src/a.ts"), file("src/b.ts")])
    expect(outgoing.messages[0]!.parts[0]).toMatchObject({ hunks: [{ path: "src/a.ts" }] })
    expect(outgoing.left_out).toEqual({ "files elsewhere": 3, "changes elsewhere": 1 })
  })

  test("a file of the project that has the user's name keeps it", () => {
    const effect: Effect = { type: "file", path: "packages/alice/index.ts", action: "read" }
    expect(leave([], [effect]).messages[0]!.effects).toEqual([effect])
  })

  test("without tool calls no command and no file is sent, and without results no error of a command", () => {
    const command: Effect = { type: "command", command: "npm test", failed: true, error: "boom" }
    const file: Effect = { type: "file", path: "src/a.ts", action: "read" }
    expect(leave([], [command, file], { what: ["said"] }).messages[0]!.effects).toEqual([])
    expect(leave([], [command], { what: ["said", "called"] }).messages[0]!.effects).toEqual([
      { type: "command", command: "npm test", failed: true },
    ])
  })

  test("an id that names a place is replaced, with the same id every time", () => {
    const { places } = rules()
    expect(sharedId("1f3c-22", places)).toBe("1f3c-22")
    const hidden = sharedId("/home/alice/code/api/.aider.chat", places)
    expect(hidden).toMatch(/^dex-[0-9a-f]{32}$/)
    expect(sharedId("/home/alice/code/api/.aider.chat", places)).toBe(hidden)
  })

  test("a message that is too large for a hub is shortened and says so; a chunk is never larger than a hub accepts", () => {
    const small = message([words("before")], [], 1)
    const large = message([words("é".repeat(5 << 20)), words("kept as it is")], [], 2)
    const outgoing = createOutgoing(row(), [small, large, { ...small, number: 3 }], [], rules())
    const [long, short] = outgoing.messages[1]!.parts as [Part, Part]
    expect(long.text).toMatch(/é\n\[4194304 more characters are only on the author's machine/)
    expect(short.text).toBe("kept as it is")
    expect(outgoing.left_out).toEqual({ "text of very long messages": 1 })
    const escaped = leave([words("\u0001".repeat(2 << 20)), words("\u0002".repeat(2 << 20))])
    const hunks = [
      { path: "a.ts", old_start: 1, old_lines: 0, new_start: 1, new_lines: 1, lines: ["+x".repeat(3 << 20)] },
    ]
    const changed = leave([{ type: "tool_result", text: "done", origin: "local_tool", is_error: false, hunks }])
    expect(changed.messages[0]!.parts).toEqual([
      { type: "tool_result", text: "done", origin: "local_tool", is_error: false },
    ])
    for (const { messages } of [outgoing, escaped, changed]) {
      const chunks = [...chunksOf(messages)]
      expect(Math.max(...chunks.map(({ plain_bytes }) => plain_bytes))).toBeLessThanOrEqual(MAX_CHUNK_PLAIN)
      for (const { data } of chunks) expect(unpackChunk(data, maxPlain(data.length)).messages.length).toBeGreaterThan(0)
    }
  })

  test("chunks unpack to the messages that were sent", () => {
    const outgoing = leave([words("x".repeat(300_000)), words("y")])
    expect([...chunksOf(outgoing.messages)].flatMap(({ data }) => unpackChunk(data).messages)).toEqual(
      outgoing.messages,
    )
  })
})

describe("paths below a project", () => {
  const at = (path: string, folders: string[], platform: NodeJS.Platform = "linux") =>
    pathInProject(path, folders, { home: "/home/alice", platform })

  test.each<[string, string[], string | undefined, NodeJS.Platform?]>([
    ["/w/api/src/a.ts", ["/w/api"], "src/a.ts"],
    ["/w/api/../secret.txt", ["/w/api"], undefined],
    ["/w/api2/a.ts", ["/w/api"], undefined],
    ["./src/../src/a.ts", ["/w/api"], "src/a.ts"],
    ["../a.ts", ["/w/api"], undefined],
    ["~/code/api/a.ts", ["/home/alice/code/api"], "a.ts"],
    ["~/notes.md", ["/home/alice/code/api"], undefined],
    ["C:\\w\\API\\src\\a.ts", ["/w/api", "c:\\w\\api"], "src/a.ts"],
    ["\\\\?\\C:\\w\\api\\a.ts", ["C:/w/api"], "a.ts"],
    ["C:\\Users\\alice\\a.ts", ["C:\\w\\api"], undefined],
    ["C:a.ts", ["C:\\w\\api"], undefined],
    ["\\\\server\\share\\a.ts", ["C:\\w\\api"], undefined],
    ["src\\a.ts", ["C:\\w\\api"], "src/a.ts"],
    ["/W/API/a.ts", ["/w/api"], undefined],
    ["/W/API/a.ts", ["/w/api"], "a.ts", "darwin"],
    ["/w/api/.claude/worktrees/fix-1/src/a.ts", ["/w/api"], "src/a.ts"],
    ["/w/trees/one/src/a.ts", ["/w/api", "/w/trees/one"], "src/a.ts"],
    ["/w/api", ["/w/api"], undefined],
    ["/etc/passwd", ["/"], undefined],
  ])("%s below %j is %s", (path, folders, expected, platform = "linux") => {
    expect(at(path, folders, platform)).toBe(expected)
  })

  test("none leads out of the project, in any spelling", () => {
    const piece = fc.constantFrom("..", ".", "a", "b c", "", "~", "C:", "\\", "..\\..", "%2e%2e")
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 8 }),
        fc.constantFrom("/", "\\"),
        fc.boolean(),
        (pieces, slash, whole) => {
          const found = at(`${whole ? "/w/api/" : ""}${pieces.join(slash)}`, ["/w/api"])
          if (found === undefined) return
          expect(found.startsWith("/")).toBe(false)
          expect(found.split("/")).not.toContain("..")
        },
      ),
    )
  })
})

describe("places in text", () => {
  const places = createPlacePatterns({ home: "/home/alice", folders: ["/Users/ally/api"], user: ["asmith"] })
  test.each([
    ["see /home/alice/code/a.ts.", "see ~/code/a.ts."],
    ["in /home/alice.", "in ~."],
    ["file:///home/alice/x", "file:~/x"],
    ["/home/alice2/x is another's", "/home/alice2/x is another's"],
    ['{"path":"C:\\\\Users\\\\bob\\\\x"}', '{"path":"C:\\\\Users\\\\[user]\\\\x"}'],
    ["/Users/ally/api/src and /Users/other/x", "/Users/[user]/api/src and /Users/[user]/x"],
    ["/mnt/c/Users/asmith/x", "/mnt/c/Users/[user]/x"],
    ["/Users/Shared/x", "/Users/Shared/x"],
    ["GET /scim/v2/Users/2819", "GET /scim/v2/Users/2819"],
    ["~/.claude/projects/-home-alice-work/x", "~/.claude/projects/-home-[user]-work/x"],
    ["/srv/data/asmith/x and /tmp/claude-asmith/y", "/srv/data/[user]/x and /tmp/claude-[user]/y"],
    ["%2Fhome%2Falice%2Fx", "~%2Fx"],
    ["ls ~asmith/x", "ls ~[user]/x"],
    ["https://github.com/asmith/api and git@github.com:asmith/api.git", undefined],
    ["asmith said: and/or", undefined],
  ])("%s", (text, expected = text) => {
    const { text: masked } = maskPlaces(text, places)
    expect(masked).toBe(expected)
    expect(maskPlaces(masked, places).text).toBe(masked)
  })

  test("a home that is the root, and an account name that identifies nobody, mask only themselves", () => {
    expect(maskPlaces("/etc/root/x", createPlacePatterns({ home: "/" })).text).toBe("/etc/root/x")
    const root = createPlacePatterns({ home: "/root" })
    expect(maskPlaces("/root/x and /srv/root/y", root).text).toBe("~/x and /srv/root/y")
  })
})

/** Names of people and systems. */
const NAME = fc.constantFrom("alice", "alice.smith", "Alice Smith", "jösé", "李雷", "o'neil", "bob-1", "al")
const HOME = fc.constantFrom(
  (name: string) => `/home/${name}`,
  (name: string) => `/Users/${name}`,
  (name: string) => `C:\\Users\\${name}`,
  (name: string) => `/data/homes/${name}`,
)
const SPELLED: ((path: string) => string)[] = [
  (path) => path,
  (path) => JSON.stringify(path).slice(1, -1),
  (path) => path.normalize("NFD"),
  (path) => encodeURIComponent(path),
  (path) => path.replaceAll("/", "\\/"),
  (path) => path.replaceAll(/[^\x20-\x7e]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`),
  (path) => path.toUpperCase(),
  (path) => [...path].join("\u200b"),
]
const AROUND: ((path: string) => string)[] = [
  (path) => path,
  (path) => `look at ${path}, please`,
  (path) => `"${path}/src/a.ts"`,
  (path) => `cd ${path}/x && ls; # ${path}.`,
  (path) => `PATH=/bin:${path}/bin:${path}-old`,
  (path) => `file://${path}/a.ts:3:4`,
  (path) => `(${path})\n${path}\t${path}`,
]
/** Other paths in which the name occurs. */
const ELSEWHERE: ((name: string) => string)[] = [
  (name) => `/Users/${name}/x`,
  (name) => `C:\\Users\\${name}\\x`,
  (name) => `/mnt/c/Users/${name}/x`,
  (name) => `/srv/build/${name}/out.log`,
  (name) => `/tmp/claude-${name}/tasks`,
  (name) => `~/.claude/projects/-home-${name}-api/1.jsonl`,
]

/** 2,000 in CI, 20,000 by `npm run torture`. */
const PLANTED = Number(process.env.DEX_OUTGOING ?? 2_000)

test("no byte that is sent contains the home folder, the user's name in a path, a secret, thinking or injected text", () => {
  const spelling = fc.constantFrom(...SPELLED)
  const around = fc.constantFrom(...AROUND)
  const planted = fc.record({
    name: NAME,
    homeOf: HOME,
    spelling,
    around,
    elsewhere: fc.constantFrom(...ELSEWHERE),
    seed: fc.nat(),
  })
  let seen = 0
  fc.assert(
    fc.property(planted, ({ name, homeOf, spelling, around, elsewhere, seed }) => {
      const home = homeOf(name)
      const project = `${home}${home.includes("\\") ? "\\" : "/"}api`
      const places = createPlacePatterns({ home, folders: [project] })
      const text = `${around(spelling(home))} ${spelling(elsewhere(name))} ${SECRET}`
      const texts: Part[] = [
        words(text),
        { type: "summary", text, origin: "agent" },
        { type: "tool_call", text: JSON.stringify({ command: text }), origin: "agent", tool: "Bash", call_id: "c1" },
        {
          type: "tool_result",
          text,
          origin: "local_tool",
          is_error: true,
          hunks: [
            { path: `${project}/a.ts`, old_start: 1, old_lines: 1, new_start: 1, new_lines: 1, lines: [`+${text}`] },
          ],
        },
        { type: "thinking", text: `${THOUGHT} ${seed}`, origin: "agent" },
        { type: "text", text: INJECTED, origin: "injected" },
      ]
      const effects: Effect[] = [
        { type: "command", command: text, failed: true, error: text },
        { type: "commit", hash: "abc1234", subject: text, branch: "main" },
        { type: "file", path: `${home}/.ssh/id`, action: "read" },
        { type: "file", path: `${project}/src/x.ts`, action: "edited" },
      ]
      const conversation = row({
        project,
        cwds: [project],
        path: `${home}/.claude/x.jsonl`,
        title: { text, from: "first_prompt" },
        git_branch: "feature",
      })
      const outgoing = createOutgoing(
        conversation,
        [message(texts, effects)],
        [],
        rules({ home, folders: [project], places }),
      )
      const bytes = decoded(bytesOf(outgoing))
      const plain = decoded(home)
      expect(bytes).not.toContain(plain)
      for (const piece of bytes.split(/[\s"'`<>|;,(){}]+/))
        if (/[\\/]/.test(piece))
          expect(piece).not.toMatch(new RegExp(`[\\\\/~-]${escaped(decoded(name))}(?![\\p{L}\\p{N}])`, "u"))
      expect(bytes).not.toContain(decoded(SECRET.slice(8, 30)))
      expect(bytes).not.toContain(THOUGHT)
      // The hub checks it again by the same rules.
      for (const one of outgoing.messages) expect(redactRecord(structuredClone(one) as never).redactions).toEqual({})
      expect(bytes).not.toContain(INJECTED)
      expect(outgoing.messages[0]!.effects.flatMap((effect) => (effect.type === "file" ? [effect.path] : []))).toEqual([
        "src/x.ts",
      ])
      seen++
    }),
    { numRuns: PLANTED },
  )
  expect(seen).toBe(PLANTED)
  expect(redactText(SECRET)).not.toContain(SECRET)
})

/** Normalises what a reader could decode: lower case, without escapes and invisible characters, one kind of slash. */
function decoded(text: string): string {
  return text
    .replaceAll(/\\+u([0-9a-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => {
      try {
        return decodeURIComponent(run)
      } catch {
        return run
      }
    })
    .replaceAll("\u200b", "")
    .replaceAll(/[\\/]+/g, "/")
    .normalize("NFC")
    .toLowerCase()
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&")
}
