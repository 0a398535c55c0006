import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { agentOf } from "../../src/agents/registry.ts"
import { createFileBelow } from "../../src/tools/resume/bring.ts"
import { claudeSession } from "../support/home.ts"
import { makeRepository } from "../support/repository.ts"
import { tempDir, treeHash } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"

// e2e/resume.test.ts does the same with the real agents.

const ID = "44444444-4444-4444-8444-444444444444"
const WORD = "quillmarsh"

describe("in another clone", () => {
  test.each(["original", "copy"])(
    "copies a transcript of Claude Code up to 2.1.222, counts it once, and loses nothing when the %s is deleted",
    async (deleted) => {
      const { home, old, clone, run, json } = twoClones()
      standIn(home, "claude", "echo '2.1.222 (Claude Code)'")
      const original = claudeIn(home, old)
      await syncHome(home)
      const before = treeHash(join(home, ".claude"))

      const asked = await run("resume", ID)
      expect(asked).toMatchObject({ code: 2, stdout: "" })
      expect(asked.stderr).toMatch(
        /Claude Code does not find this conversation from \S+clone\. dex can copy it to \S+\.jsonl; the original stays as it is\..* add --yes/s,
      )
      expect(await json("resume", ID)).toMatchObject({
        folder: clone,
        copy: { agent: "Claude Code", commands: [], done: false },
      })
      expect(treeHash(join(home, ".claude"))).toEqual(before)

      const command = `cd ${clone} && claude --resume ${ID}\n`
      const copied = await run("resume", ID, "--yes")
      expect(copied).toMatchObject({ code: 0, stdout: command })
      const copy = join(home, ".claude", "projects", slugOf(clone), `${ID}.jsonl`)
      expect(readFileSync(copy)).toEqual(readFileSync(original))
      expect(statSync(copy).mode & 0o777).toBe(0o600)
      rmSync(join(home, ".claude", "projects", slugOf(clone)), { recursive: true })
      expect(treeHash(join(home, ".claude"))).toEqual(before)
      await run("resume", ID, "--yes")

      const line = JSON.parse(readFileSync(copy, "utf8").split("\n")[0]!)
      const message = { role: "user", content: "and the brindlefen?" }
      appendFileSync(
        copy,
        `${JSON.stringify({ ...line, uuid: "later-1", parentUuid: line.uuid, cwd: clone, message })}\n`,
      )
      const check = async () => {
        await syncHome(home)
        expect((await json("list", "--all")).conversations).toMatchObject([
          { id: `claude_code:${ID}`, message_count: 3 },
        ])
        for (const word of [WORD, "brindlefen"]) expect((await json("search", word)).total).toBe(1)
        expect((await json("usage")).total.answers).toBe(1)
      }
      await check()
      expect(await run("resume", ID)).toMatchObject({ code: 0, stdout: command })
      rmSync(deleted === "copy" ? copy : original)
      await check()
    },
  )

  test("opens it without a copy in Claude Code since 2.1.223", async () => {
    const { home, old, clone, run } = twoClones()
    standIn(home, "claude", "echo '2.1.223 (Claude Code)'")
    claudeIn(home, old)
    await syncHome(home)
    expect(await run("resume", ID)).toMatchObject({ code: 0, stdout: `cd ${clone} && claude --resume ${ID}\n` })
  })

  test("tells Codex to continue in this folder", async () => {
    const { home, old, clone, run } = twoClones()
    const folder = join(home, ".codex", "sessions", "2026", "11", "01")
    mkdirSync(folder, { recursive: true })
    const at = "2026-11-01T00:00:00.000Z"
    const content = [{ type: "input_text", text: WORD }]
    writeLines(join(folder, `rollout-2026-11-01T00-00-00-${ID}.jsonl`), [
      { timestamp: at, type: "session_meta", payload: { id: ID, timestamp: at, cwd: old, cli_version: "0.166.0" } },
      { timestamp: at, type: "response_item", payload: { type: "message", role: "user", content } },
    ])
    await syncHome(home)
    expect((await run("resume", ID)).stdout).toBe(`cd ${clone} && codex resume -C . ${ID}\n`)
  })

  test("creates a folder that Gemini CLI adopts, and does not change its list of projects", async () => {
    const { home, old, clone, run, json } = twoClones()
    const tmp = geminiIn(home, old)
    await syncHome(home)
    const before = treeHash(join(home, ".gemini"))
    expect((await run("resume", ID, "--yes")).stdout).toBe(`cd ${clone} && gemini --resume ${ID}\n`)
    expect(treeHash(join(home, ".gemini"))).toMatchObject(before)
    expect(readFileSync(join(tmp, "clone", ".project_root"), "utf8")).toBe(clone)
    const name = `session-2026-11-01T00-00-${ID.slice(0, 8)}.jsonl`
    expect(readFileSync(join(tmp, "clone", "chats", name))).toEqual(readFileSync(join(tmp, "old", "chats", name)))
    await syncHome(home)
    expect((await json("list", "--all")).conversations).toMatchObject([{ message_count: 1 }])
    expect((await json("search", WORD)).total).toBe(1)
    expect(await json("resume", ID)).not.toHaveProperty("copy")
  })

  test("writes the new folder only into the first record of a copy for Qwen Code", async () => {
    const { home, old, clone, run, json } = twoClones()
    const original = qwenIn(home, old, ID)
    await syncHome(home)
    expect((await run("resume", ID, "--yes")).stdout).toBe(`cd ${clone} && qwen --resume ${ID}\n`)
    const copy = join(home, ".qwen", "projects", slugOf(clone), "chats", `${ID}.jsonl`)
    const [[first, ...others], [firstCopy, ...otherCopies]] = [linesOf(original), linesOf(copy)]
    expect(firstCopy).toEqual({ ...(first as object), cwd: clone })
    expect(otherCopies).toEqual(others)
    await syncHome(home)
    expect((await json("list", "--all")).conversations).toMatchObject([{ message_count: 2 }])
    expect((await json("search", WORD)).total).toBe(1)
  })

  test.each([3_000_000, 0])("copies a first record of any length, with %d characters after it", async (size) => {
    const home = tempDir()
    const original = qwenIn(home, "/old", ID)
    const first = JSON.stringify({ sessionId: ID, cwd: "/old", text: "x".repeat(2_500_000) })
    const others = size === 0 ? "" : `\n{"text":"${"y".repeat(size)}"}\n{"torn`
    writeFileSync(original, first + others)
    const bring = (await agentOf("qwen_code")!.bring!())!
    const plan = bring.plan({ id: ID, cwds: ["/old"] }, "/new", { home, env: {}, platform: "linux" })
    if (plan?.type !== "files") throw new Error("no files")
    const copy = Buffer.concat([...plan.files[0]!.content()].map((piece) => Buffer.from(piece))).toString()
    expect(copy === first.replace("/old", "/new") + others).toBe(true)
  })

  test("exports an OpenCode conversation to a file, because a pipe would lose the end of a long one, and imports a copy", async () => {
    const { home, old, clone, run } = twoClones()
    const imported = join(home, "imported.json")
    const exported = '{"info":{"id":"ses_e0e324a69ffexp3py2gOdUtJd3","directory":"/old"},"messages":[]}'
    standIn(
      home,
      "opencode",
      `case $1 in
  export) if [ -p /dev/stdout ]; then echo 'a pipe' >&2; exit 1; fi; echo '${exported}' ;;
  import) cp "$2" '${imported}'; echo "Imported session: $(sed 's/.*"id":"\\([^"]*\\)".*/\\1/' "$2")" ;;
esac`,
    )
    opencodeIn(home, old)
    await syncHome(home)
    const { stdout, stderr } = await run("resume", "ses_e0e324a69ffe", "--yes")
    const { info } = JSON.parse(readFileSync(imported, "utf8"))
    expect(info).toMatchObject({ id: expect.not.stringContaining("xp3py2gOdUtJd3"), directory: clone })
    expect(stdout, stderr).toBe(`cd ${clone} && opencode --session ${info.id}\n`)
  })

  test("says what failed if the agent's own import does not work, and suggests a handover", async () => {
    const { home, old, run } = twoClones()
    standIn(home, "opencode", "echo 'Session not found' >&2; exit 1")
    opencodeIn(home, old)
    await syncHome(home)
    const { code, stdout, stderr } = await run("resume", "ses_e0e324a69ffe", "--yes")
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
    expect(stderr).toMatch(
      /could not be copied: opencode export failed \(Session not found\)\. .*dex handover opencode:ses_/s,
    )
  })
})

describe("a hostile conversation", () => {
  const machineOf = (home: string) => ({ home, env: {}, platform: process.platform })
  const PLANNED = ["claude_code", "gemini_cli", "qwen_code", "opencode"]

  test.each(PLANNED)("of %s cannot choose where dex writes", async (source) => {
    const home = tempDir()
    const bring = (await agentOf(source)!.bring!())!
    const ids = [
      "../../../evil",
      "..",
      "a/b",
      "a\\b",
      "-rf",
      "--help",
      "",
      "a".repeat(220),
      "ses_../../x",
      "44444444-/../x",
    ]
    for (const id of ids) {
      for (const path of [
        join(home, ".claude", "projects", "x", `${id}.jsonl`),
        join(home, ".qwen", "projects", "x", "chats", `${id}.jsonl`),
        join(home, ".gemini", "tmp", "x", "chats", `session-x-${id.slice(0, 8)}.jsonl`),
      ]) {
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(path, '{"cwd":"/old"}\n')
      }
      expect(bring.plan({ id, cwds: ["/old"] }, join(home, "new"), machineOf(home)), id).toBeUndefined()
    }
  })

  test("with an id that leads elsewhere is not copied, and its command is quoted", async () => {
    const { home, old, clone, run } = twoClones()
    qwenIn(home, old, "../../../../evil$HOME", "evil")
    await syncHome(home)
    const before = treeHash(join(home, ".qwen"))
    const { stdout, stderr } = await run("resume", "qwen_code:../../../../evil$HOME", "--yes")
    expect(stdout, stderr).toBe(`cd ${clone} && qwen --resume '../../../../evil$HOME'\n`)
    expect(treeHash(join(home, ".qwen"))).toEqual(before)
  })

  test("with an id that begins with - is not passed to its agent", async () => {
    const { home, old, run } = twoClones()
    qwenIn(home, old, "--yolo", "yolo")
    await syncHome(home)
    const { code, stdout, stderr } = await run("resume", "qwen_code:--yolo")
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
    expect(stderr).toMatch(/would read this conversation's id as an option\. .*dex handover/s)
  })

  test("is not copied through a link", async () => {
    const { home, old, clone, run } = twoClones()
    standIn(home, "claude", "echo 2.1.197")
    claudeIn(home, old)
    await syncHome(home)
    const elsewhere = join(home, "elsewhere")
    mkdirSync(elsewhere)
    const target = join(home, ".claude", "projects", slugOf(clone))
    symlinkSync(elsewhere, target)
    const { code, stderr } = await run("resume", ID, "--yes")
    expect(code).toBe(2)
    expect(stderr).toMatch(/could not be copied: .* is a link or a file, not a folder/s)
    rmSync(target)
    mkdirSync(target)
    symlinkSync(join(elsewhere, "created"), join(target, `${ID}.jsonl`))
    expect((await run("resume", ID, "--yes")).code).toBe(2)
    expect(readdirSync(elsewhere)).toEqual([])
  })

  test("is not read through a link", async () => {
    const { home, old, run } = twoClones()
    standIn(home, "claude", "echo 2.1.197")
    const original = claudeIn(home, old)
    await syncHome(home)
    const secret = join(home, "secret")
    writeFileSync(secret, "a secret")
    rmSync(original)
    symlinkSync(secret, original)
    const before = treeHash(join(home, ".claude"))
    await run("resume", ID, "--yes")
    expect(treeHash(join(home, ".claude"))).toEqual(before)
  })
})

test.each(["../a", "a/../../b", "/etc/a", "a//b", "", "a/./b", "a\0"])(
  "a new file with the path %j is refused",
  (path) => {
    const root = join(tempDir(), "root")
    expect(() => createFileBelow(root, path, ["x"])).toThrow(/does not lead to a file below/)
    expect(existsSync(root)).toBe(false)
  },
)

test("a new file never replaces one", () => {
  const root = tempDir()
  createFileBelow(root, "a/b", ["first"])
  expect(() => createFileBelow(root, "a/b", ["second"])).toThrow(/EEXIST/)
  expect(readFileSync(join(root, "a", "b"), "utf8")).toBe("first")
})

test("a copy for OpenCode has ids of its own, the same each time, and keeps the order and the links between messages", async () => {
  const bring = (await agentOf("opencode")!.bring!())!
  const planFor = (folder: string) =>
    bring.plan({ id: "ses_e0e324a69ffexp3py2gOdUtJd3", cwds: ["/old"] }, folder, {
      home: "/h",
      env: {},
      platform: "linux",
    })
  const plan = planFor("/new")
  if (plan?.type !== "import") throw new Error("no import")
  expect(plan.id).toMatch(/^ses_e0e324a69ffe[0-9a-f]{14}$/)
  expect(planFor("/new")).toMatchObject({ id: plan.id })
  expect(planFor("/other")).not.toMatchObject({ id: plan.id })
  expect(planFor("/old")).toBeUndefined()
  const [one, two] = ["msg_1aaa", "msg_1bbb"]
  const exported = JSON.stringify({
    info: {
      id: "ses_old",
      directory: "/old",
      parentID: "ses_parent",
      time: { created: 1 },
      share: { url: "https://x" },
    },
    messages: [
      {
        info: { id: one, sessionID: "ses_old", role: "user" },
        parts: [{ id: "prt_1", messageID: one, sessionID: "ses_old", type: "text", text: "a" }],
      },
      { info: { id: two, parentID: one, sessionID: "ses_old", role: "assistant" }, parts: [] },
    ],
  })
  const { info, messages } = JSON.parse(plan.convert(exported))
  expect(info).toEqual({ id: plan.id, directory: "/new", time: { created: expect.any(Number) } })
  expect(messages[0].info.id).toMatch(/^msg_1aaadex[0-9a-f]{8}$/)
  expect(messages[0].parts[0]).toMatchObject({ messageID: messages[0].info.id, sessionID: plan.id, text: "a" })
  expect(messages[1].info).toMatchObject({ parentID: messages[0].info.id, sessionID: plan.id })
  const again = JSON.parse(plan.convert(JSON.stringify({ info, messages })))
  expect(again.messages.map(({ info }: { info: { id: string } }) => info.id)).toEqual([
    messages[0].info.id,
    messages[1].info.id,
  ])
  expect(() => plan.convert("not JSON")).toThrow(/did not print the conversation/)
})

/** A repository and its clone, and what runs in the clone. */
function twoClones() {
  const home = tempDir()
  const [old, clone] = [join(home, "old"), join(home, "clone")]
  const { git } = makeRepository(old)
  git("commit", "-q", "--allow-empty", "-m", "first")
  git("clone", "-q", old, clone)
  const env = { PATH: `${join(home, "bin")}:${process.env.PATH}` }
  const run = (...args: string[]) => warmDex(home, args, env, clone)
  const json = async (...args: string[]) => JSON.parse((await run(...args, "--json")).stdout)
  return { home, old, clone, run, json }
}

/** An agent's program that does only this. */
function standIn(home: string, name: string, script: string): void {
  mkdirSync(join(home, "bin"), { recursive: true })
  writeFileSync(join(home, "bin", name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(home, "bin", name), 0o755)
}

function claudeIn(home: string, cwd: string): string {
  const turns = [{ user: `what is a ${WORD}?` }, { assistant: "nothing" }]
  return claudeSession(home, { id: ID, cwd, start: "2026-11-01T00:00:00Z", turns })
}

function geminiIn(home: string, folder: string): string {
  const tmp = join(home, ".gemini", "tmp")
  mkdirSync(join(tmp, "old", "chats"), { recursive: true })
  writeFileSync(join(tmp, "old", ".project_root"), folder)
  writeFileSync(join(home, ".gemini", "projects.json"), JSON.stringify({ projects: { [folder]: "old" } }))
  const timestamp = "2026-11-01T00:00:00.000Z"
  writeLines(join(tmp, "old", "chats", `session-2026-11-01T00-00-${ID.slice(0, 8)}.jsonl`), [
    { sessionId: ID, projectHash: "x", startTime: timestamp, lastUpdated: timestamp, kind: "main" },
    { id: "11111111-1111-4111-8111-111111111111", timestamp, type: "user", content: [{ text: `what is a ${WORD}?` }] },
  ])
  return tmp
}

function qwenIn(home: string, cwd: string, sessionId: string, name = sessionId): string {
  const chats = join(home, ".qwen", "projects", slugOf(cwd), "chats")
  mkdirSync(chats, { recursive: true })
  const path = join(chats, `${name}.jsonl`)
  const common = { sessionId, timestamp: "2026-11-01T00:00:00.000Z", cwd, version: "0.24.4" }
  writeLines(path, [
    {
      uuid: "q1",
      parentUuid: null,
      ...common,
      type: "user",
      message: { role: "user", parts: [{ text: `what is a ${WORD}?` }] },
    },
    {
      uuid: "q2",
      parentUuid: "q1",
      ...common,
      type: "assistant",
      message: { role: "model", parts: [{ text: "nothing" }] },
    },
  ])
  return path
}

function opencodeIn(home: string, directory: string): void {
  const storage = join(home, ".local", "share", "opencode", "storage")
  const [session, message] = ["ses_e0e324a69ffexp3py2gOdUtJd3", "msg_1f1cdb7810018YKjMJB069CHMz"]
  const put = (path: string, content: object) => {
    mkdirSync(join(storage, path, ".."), { recursive: true })
    writeFileSync(join(storage, path), JSON.stringify(content))
  }
  const time = { created: 1_790_000_000_000, updated: 1_790_000_000_000 }
  put(`session/project/${session}.json`, { id: session, directory, title: "a title", time, version: "1.1.65" })
  put(`message/${session}/${message}.json`, { id: message, sessionID: session, role: "user", time })
  put(`part/${message}/prt_1.json`, { id: "prt_1", messageID: message, sessionID: session, type: "text", text: WORD })
}

function slugOf(folder: string): string {
  return folder.replaceAll(/[^a-zA-Z0-9]/g, "-")
}

function writeLines(path: string, records: object[]): void {
  writeFileSync(path, records.map((record) => `${JSON.stringify(record)}\n`).join(""))
}

function linesOf(path: string): unknown[] {
  return readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
}
