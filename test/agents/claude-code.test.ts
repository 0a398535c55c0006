import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { claudeCodeConnector } from "../../src/agents/claude-code/connector.ts"
import { isWantedLine, parseLine, stripClaudeCodeRecord } from "../../src/agents/claude-code/strip.ts"
import type { Conversation, Message } from "../../src/core/conversation.ts"
import type { RawRecord } from "../../src/core/record.ts"
import {
  call,
  conversations,
  jsonl,
  lineOf,
  PROJECT,
  put,
  putSession,
  readHome,
  SESSION,
  text,
  type Writer,
  writer,
} from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"
import { testConnector } from "./contract.ts"

testConnector(claudeCodeConnector, "test/fixtures/claude_code")

/** The main conversation of a session that `write` writes. */
function session(write: (main: Writer) => void, envelope: RawRecord = {}): Conversation {
  const home = tempDir()
  const main = writer(envelope)
  write(main)
  putSession(home, main.records)
  const found = conversations(home).find((conversation) => conversation.id === SESSION)
  if (!found) throw new Error("the session has no messages")
  return found
}

function lines(conversation: Conversation): string[] {
  return conversation.messages.map(lineOf)
}

function withKey(conversation: Conversation, key: string): Message {
  const found = conversation.messages.find((message) => message.key === key)
  if (!found) throw new Error(`no message ${key} among ${conversation.messages.map((message) => message.key)}`)
  return found
}

/** The effects and the result of one tool call. */
function effectsOf(name: string, input: RawRecord, content: unknown, more: RawRecord = {}, block: RawRecord = {}) {
  const parsed = session((main) => {
    main.prompt("go")
    main.answer("msg_1", [call("toolu_1", name, input)])
    main.result("toolu_1", content, more, block)
  })
  const result = parsed.messages.at(-1)!.parts.find((part) => part.type === "tool_result")!
  return { effects: withKey(parsed, "msg_1").effects ?? [], result, last: parsed.messages.at(-1)! }
}

describe("roots", () => {
  test("CLAUDE_CONFIG_DIR replaces ~/.claude, and may name several folders", () => {
    const home = "/home/dev"
    const at = (env: Record<string, string>) => claudeCodeConnector.roots({ home, env, platform: "linux" })
    expect(at({})).toEqual([
      "/home/dev/.claude",
      "/home/dev/.config/claude",
      "/home/dev/.config/Claude/local-agent-mode-sessions",
    ])
    expect(at({ CLAUDE_CONFIG_DIR: "/a, /b" }).slice(0, 3)).toEqual(["/a", "/b", "/home/dev/.config/claude"])
  })

  test("Claude Desktop's Cowork sessions have a separate folder on each platform", () => {
    const on = (platform: NodeJS.Platform, env = {}) =>
      claudeCodeConnector.roots({ home: "/h", env, platform }).slice(2)
    expect(on("darwin")).toEqual(["/h/Library/Application Support/Claude/local-agent-mode-sessions"])
    expect(on("win32", { APPDATA: "/r", LOCALAPPDATA: "/l" })).toEqual([
      "/r/Claude/local-agent-mode-sessions",
      "/l/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/local-agent-mode-sessions",
    ])
  })

  test("finds only transcripts, older sibling agents, nested subagents and the prompt log", () => {
    const home = tempDir()
    const projects = `.claude/projects/${PROJECT}`
    for (const path of [
      ".claude/history.jsonl",
      `${projects}/${SESSION}.jsonl`,
      `${projects}/agent-old.jsonl`,
      `${projects}/${SESSION}/subagents/agent-new.jsonl`,
      `${projects}/${SESSION}/subagents/workflows/wf/agent-deep.jsonl`,
      // none of these is a transcript
      `${projects}/${SESSION}/subagents/workflows/wf/journal.jsonl`,
      `${projects}/${SESSION}/subagents/agent-new.meta.json`,
      `${projects}/${SESSION}/tool-results/x.jsonl`,
      `${projects}/sessions-index.json`,
      `${projects}/memory/MEMORY.md`,
      ".claude/todos/x.json",
    ]) {
      put(home, path, "")
    }
    expect(readHome(home).map(({ unit }) => unit.key)).toEqual([
      `${PROJECT}/${SESSION}/subagents/agent-new.jsonl`,
      `${PROJECT}/${SESSION}/subagents/workflows/wf/agent-deep.jsonl`,
      `${PROJECT}/${SESSION}.jsonl`,
      `${PROJECT}/agent-old.jsonl`,
      ".claude/history.jsonl",
    ])
  })

  test("a transcript that is a symbolic link is reported and not followed", () => {
    const home = tempDir()
    const secret = put(home, "secret.jsonl", [{ type: "user", message: { content: "secret" } }])
    mkdirSync(join(home, ".claude/projects", PROJECT), { recursive: true })
    symlinkSync(secret, join(home, ".claude/projects", PROJECT, `${SESSION}.jsonl`))
    const found = [...claudeCodeConnector.discover(join(home, ".claude"), () => false)]
    expect(found).toEqual([{ unreadable: expect.stringContaining("not followed"), path: expect.any(String) }])
  })

  test("a machine without Claude Code has no sessions and no problems", () => {
    expect([...claudeCodeConnector.discover(join(tempDir(), ".claude"), () => false)]).toEqual([])
  })
})

describe("answers", () => {
  test("merges the records of one API message, one per block, by message.id", () => {
    const parsed = session((main) => {
      main.prompt("go")
      main.answer("msg_1", [
        { type: "thinking", thinking: "hm", signature: "x" },
        text("I run it."),
        call("t1", "Bash", {}),
      ])
    })
    expect(lines(parsed)).toEqual([
      "user person:go",
      "assistant thinking agent:hm | agent:I run it. | tool_call agent:{}",
    ])
    expect(parsed.messages[1]).toMatchObject({ key: "msg_1", model: "claude-opus-4-5" })
  })

  test("usage is repeated in every record of an answer, and the last one counts", () => {
    const parsed = session((main) => main.answer("msg_1", [text("a"), text("b"), text("c")]))
    expect(parsed.messages[0]!.usage).toEqual({ input: 3, output: 21, cache_read: 500, cache_write: 40 })
  })

  test("a result between two records of an answer does not split it", () => {
    const parsed = session((main) => {
      main.answer("msg_1", [call("t1", "Bash", { command: "a" })])
      main.result("t1", "one")
      main.answer("msg_1", [call("t2", "Bash", { command: "b" })])
      main.result("t2", "two")
    })
    expect(parsed.messages.map((message) => message.role)).toEqual(["assistant", "tool", "tool"])
    expect(parsed.messages[0]!.parts.length).toBe(2)
  })

  test("older builds rewrote an answer while it grew: the longer snapshot replaces the shorter one", () => {
    const grow = (...snapshots: unknown[][]) =>
      lines(
        session((main) => {
          for (const content of snapshots) main.add({ type: "assistant", message: { id: "m", content } })
        }),
      )
    expect(grow([text("Hel")], [text("Hello")])).toEqual(["assistant agent:Hello"])
    expect(grow([text("Hello")], [text("Hello"), call("t", "X", {})])).toEqual([
      "assistant agent:Hello | tool_call agent:{}",
    ])
    expect(grow([text("Hello")], [call("t", "X", {})], [call("t", "X", { a: 1 })])).toEqual([
      'assistant agent:Hello | tool_call agent:{"a":1}',
    ])
    expect(grow([text("Hello")], [text("Other")])).toEqual(["assistant agent:Hello | agent:Other"])
  })

  test("after end_turn, further blocks are added instead of replacing earlier ones", () => {
    const parsed = session((main) => {
      main.add({ type: "assistant", message: { id: "m", content: [text("Done")], stop_reason: "end_turn" } })
      main.add({ type: "assistant", message: { id: "m", content: [text("Done")] } })
    })
    expect(lines(parsed)).toEqual(["assistant agent:Done | agent:Done"])
  })

  test("local errors of the synthetic model are notices, not the agent's words, and cost nothing", () => {
    const parsed = session((main) => {
      main.prompt("go")
      const message = { id: "e", model: "<synthetic>", usage: { input_tokens: 0, output_tokens: 0 } }
      main.add({
        type: "assistant",
        isApiErrorMessage: true,
        message: { ...message, content: [text("API Error: 500")] },
      })
      main.add({ type: "assistant", message: { ...message, id: "n", content: [text("No response requested.")] } })
    })
    expect(lines(parsed)).toEqual(["user person:go", "system injected:API Error: 500"])
    expect(parsed.messages[1]!.usage).toBeUndefined()
    expect(parsed.messages[1]!.model).toBeUndefined()
  })

  test("an answer that was refused or replaced by another model's is abandoned", () => {
    const parsed = session((main) => {
      main.prompt("go")
      main.answer("msg_1", [text("first")])
      main.add({ type: "assistant", supersedesUuids: ["u2"], message: { id: "msg_2", content: [text("second")] } })
    })
    expect(parsed.messages.map((message) => message.abandoned ?? false)).toEqual([false, true, false])
  })

  test("the result of a tool on the provider's side is from the web", () => {
    const parsed = session((main) =>
      main.answer("msg_1", [
        { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "x" } },
        { type: "web_search_tool_result", tool_use_id: "s1", content: [{ title: "T", url: "https://e.test" }] },
      ]),
    )
    expect(lines(parsed)).toEqual(['assistant tool_call agent:{"query":"x"} | tool_result web:T https://e.test'])
  })
})

describe("the origin of text in a user record", () => {
  const says = (content: unknown, more: RawRecord = {}) => {
    const home = tempDir()
    const main = writer()
    main.prompt(content, more)
    putSession(home, main.records)
    return conversations(home).flatMap(lines)
  }

  test.each<[string, string, string[]]>([
    ["a prompt", "Fix it", ["user person:Fix it"]],
    ["an angle bracket that is no wrapper", "is a < b or <div>?", ["user person:is a < b or <div>?"]],
    [
      "an interruption",
      "[Request interrupted by user for tool use]",
      ["user injected:[Request interrupted by user for tool use]"],
    ],
    [
      "a task notification",
      "<task-notification>\n<task-id>1</task-id>\n</task-notification>",
      ["user injected:<task-notification>\n<task-id>1</task-id>\n</task-notification>"],
    ],
    [
      "a reminder next to a prompt",
      "Fix it\n<system-reminder>be nice</system-reminder>",
      ["user person:Fix it | injected:<system-reminder>be nice</system-reminder>"],
    ],
    [
      "the output of a local command",
      "<local-command-stdout>ok</local-command-stdout>",
      ["user injected:<local-command-stdout>ok</local-command-stdout>"],
    ],
    [
      "a caveat that is not marked as meta",
      "Caveat: The messages below were generated by the user while running local commands.",
      ["user injected:Caveat: The messages below were generated by the user while running local commands."],
    ],
    [
      "a slash command with arguments",
      "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>PR 7</command-args>",
      ["user person:/review PR 7"],
    ],
    [
      "a slash command of 1.0 with its text",
      "<command-name>fix</command-name><command-contents>Do this.</command-contents>",
      ["user person:/fix | injected:<command-contents>Do this.</command-contents>"],
    ],
    ["a shell command typed behind !", "<bash-input>git pull</bash-input>", ["user person:!git pull"]],
    [
      "the output of that shell command",
      "<bash-stdout>done</bash-stdout><bash-stderr></bash-stderr>",
      ["user injected:<bash-stdout>done</bash-stdout>"],
    ],
    ["a memory typed behind #", "<user-memory-input>use tabs</user-memory-input>", ["user person:#use tabs"]],
    [
      "a summary of 1.0, which is not marked",
      "This session is being continued from a previous conversation that ran out of context.",
      ["system summary agent:This session is being continued from a previous conversation that ran out of context."],
    ],
    ["nothing", "  ", []],
  ])("%s", (_what, content, expected) => {
    expect(says(content)).toEqual(expected)
    expect(says([text(content)])).toEqual(expected)
  })

  test("a record marked as meta, as a companion or as a notification was not typed", () => {
    expect(says("Base directory", { isMeta: true })).toEqual(["user injected:Base directory"])
    expect(says("List", { origin: { kind: "task-notification" } })).toEqual(["user injected:List"])
    expect(says("List", { origin: { kind: "human" } })).toEqual(["user person:List"])
  })

  test("a compaction's summary is the agent's, not a prompt", () => {
    expect(says("What happened so far", { isCompactSummary: true })).toEqual([
      "system summary agent:What happened so far",
    ])
  })

  test("an accepted plan that starts a new conversation is the agent's text", () => {
    const plan = "Implement the following plan:\n\n# Plan\nDo it"
    expect(says("# Plan\nDo it", { planContent: "# Plan\nDo it" })).toEqual(["user agent:# Plan\nDo it"])
    expect(says(plan)).toEqual([`user agent:${plan}`]) // older builds do not mark it
  })

  test("text that the person typed during a turn is next to a tool result", () => {
    const result = { type: "tool_result", tool_use_id: "t", content: "ok" }
    expect(says([result, text("stop, use git")])).toEqual(["user tool_result local_tool:ok | person:stop, use git"])
    expect(says([result, text("[Request interrupted by user]")])).toEqual([
      "tool tool_result local_tool:ok | injected:[Request interrupted by user]",
    ])
  })

  test("the person's words in a refused call's result are the person's", () => {
    const refusal =
      "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nnot on main"
    const { effects, last } = effectsOf("Bash", { command: "git push" }, refusal, {}, { is_error: true })
    expect(last.role).toBe("user")
    expect(last.parts[1]).toEqual({ type: "text", text: "not on main", origin: "person" })
    expect(last.parts[0]!.text).not.toContain("not on main")
    expect(effects).toEqual([]) // it never ran
  })

  test("images are stored as a digest, without their bytes", () => {
    const home = tempDir()
    const main = writer()
    const data = Buffer.alloc(5000, 7).toString("base64")
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data } }
    main.prompt([text("look"), image])
    main.answer("m", [call("t", "Read", { file_path: "/x.png" })])
    main.result("t", [image], { toolUseResult: { type: "image", file: { base64: data, type: "image/png" } } })
    putSession(home, main.records)
    const [parsed] = readHome(home)
    expect(JSON.stringify(parsed!.records)).not.toContain(data.slice(0, 100))
    const kept = {
      type: "image",
      text: "",
      mime: "image/png",
      bytes: 5000,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    }
    const [prompt, , result] = parsed!.conversations[0]!.messages
    expect(prompt!.parts[1]).toEqual({ ...kept, origin: "person" })
    expect(result!.parts[1]).toEqual({ ...kept, origin: "local_tool" })
  })
})

describe("prompts typed while the agent works", () => {
  const at = "2026-01-02T10:00:00.000Z"
  const queue = (operation: string, content?: string) => ({
    type: "queue-operation",
    operation,
    content,
    timestamp: at,
  })
  const queued = (prompt: unknown, more: RawRecord = {}) => ({
    type: "attachment",
    attachment: { type: "queued_command", prompt, ...more },
  })
  const people = (write: (main: Writer) => void) =>
    session((main) => {
      main.answer("m", [text("…")])
      write(main)
    })
      .messages.flatMap((message) => message.parts)
      .flatMap((part) => (part.origin === "person" ? [part.text] : []))

  test("a queued_command has a string or blocks, and is the person's", () => {
    expect(people((main) => main.add(queued("one")))).toEqual(["one"])
    expect(people((main) => main.add(queued([text("two"), text("lines")])))).toEqual(["two\nlines"])
  })

  test("a queued task notification is not the person's", () => {
    const note = "<task-notification>done</task-notification>"
    expect(people((main) => main.add(queued(note)))).toEqual([])
    expect(people((main) => main.add(queued("done", { commandMode: "task-notification" })))).toEqual([])
  })

  test("the queue may be the only trace of a prompt", () => {
    const prompts = people((main) => {
      main.plain(queue("enqueue", "and a test"))
      main.plain(queue("remove"))
    })
    expect(prompts).toEqual(["and a test"])
  })

  test("a prompt that is queued, attached and recorded counts once", () => {
    const once = people((main) => {
      main.plain(queue("enqueue", "and a test"))
      main.plain(queue("remove"))
      main.add(queued("and a test", { source_uuid: "the-prompt" }))
      main.prompt("and a test", { uuid: "the-prompt", timestamp: "2026-01-02T11:00:00.000Z" })
    })
    expect(once).toEqual(["and a test"])
    const joined = people((main) => {
      main.plain(queue("enqueue", "first"))
      main.plain(queue("enqueue", "second"))
      main.prompt("first\nsecond")
    })
    expect(joined).toEqual(["first\nsecond"])
  })

  test("the same words queued twice count twice", () => {
    const prompts = people((main) => {
      main.plain(queue("enqueue", "go on"))
      main.prompt("go on")
      main.plain({ ...queue("enqueue", "go on"), timestamp: "2026-01-02T10:09:00.000Z" })
      main.plain(queue("remove"))
    })
    expect(prompts).toEqual(["go on", "go on"])
    const merged = people((main) => {
      main.plain(queue("enqueue", "go on"))
      main.plain({ ...queue("enqueue", "go on"), timestamp: "2026-01-02T10:09:00.000Z" })
      main.prompt("go on")
    })
    expect(merged).toEqual(["go on", "go on"])
  })

  test("prompts taken back into the input line do not count, nor do slash commands, which are recorded elsewhere", () => {
    const prompts = people((main) => {
      main.plain(queue("enqueue", "a typpo"))
      main.plain(queue("popAll", "a typpo"))
      main.plain(queue("enqueue", "/model"))
      main.plain(queue("remove"))
    })
    expect(prompts).toEqual([])
  })
})

describe("effects of tools", () => {
  const bash = (content: string, more?: RawRecord, block?: RawRecord, input: RawRecord = {}) =>
    effectsOf("Bash", { command: "make", ...input }, content, more, block).effects[0]
  const ok = { stdout: "", stderr: "", interrupted: false, isImage: false }

  test("derives a command's exit status from what Claude Code writes instead", () => {
    const base = { type: "command", command: "make", call_id: "toolu_1" }
    expect(bash("fine", { toolUseResult: ok })).toEqual({ ...base, exit_status: 0, failed: false })
    expect(
      bash("Exit code 127\nmake: not found", { toolUseResult: "Error: Exit code 127" }, { is_error: true }),
    ).toEqual({
      ...base,
      exit_status: 127,
      failed: true,
      error: "make: not found",
    })
    expect(bash("boom: error", { toolUseResult: "Error: boom: error" }, { is_error: true })).toEqual({
      ...base,
      failed: true,
      error: "boom: error",
    })
    expect(bash("", { toolUseResult: { ...ok, returnCodeInterpretation: "No matches found" } })).toEqual({
      ...base,
      exit_status: 1,
      failed: false,
    })
    expect(bash("", { toolUseResult: { ...ok, interrupted: true } })).toEqual({ ...base, failed: true })
    expect(bash("started", { toolUseResult: { ...ok, backgroundTaskId: "b" } })).toEqual(base)
  })

  test("a command that never ran has no effect", () => {
    for (const content of [
      "<tool_use_error>Sibling tool call errored</tool_use_error>",
      "Permission to use Bash has been denied.",
    ]) {
      expect(bash(content, {}, { is_error: true })).toBeUndefined()
    }
  })

  test("finds a commit in git's output", () => {
    const { effects } = effectsOf("Bash", { command: "git commit -m x" }, "[main 1a2b3c4] x\n 1 file changed")
    expect(effects[1]).toEqual({ type: "commit", hash: "1a2b3c4", subject: "x", branch: "main", call_id: "toolu_1" })
  })

  const patch = [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 2, lines: ["-a", "+b", "+c"] }]
  const hunk = { path: "/f", old_start: 1, old_lines: 1, new_start: 1, new_lines: 2, lines: ["-a", "+b", "+c"] }
  const edited = { type: "file", path: "/f", action: "edited", call_id: "toolu_1" }

  test("edits have their hunks and the numbers of added and removed lines", () => {
    for (const name of ["Edit", "MultiEdit", "Write"]) {
      const structured = { filePath: "/f", originalFile: "a", structuredPatch: patch, type: "update" }
      const { effects, result } = effectsOf(name, { file_path: "/f" }, "updated", { toolUseResult: structured })
      expect(effects).toEqual([{ ...edited, added: 2, removed: 1 }])
      expect(result).toMatchObject({ hunks: [hunk] })
    }
  })

  test("a new file is one hunk from the call's input, since strip drops the copy in the result", () => {
    const structured = { type: "create", filePath: "/f", content: "b\nc\n", structuredPatch: [] }
    const { effects, result } = effectsOf(
      "Write",
      { file_path: "/f", content: "b\nc\n" },
      "File created successfully at: /f",
      { toolUseResult: structured },
    )
    expect(effects).toEqual([{ ...edited, added: 2, removed: 0 }])
    expect(result).toMatchObject({ hunks: [{ new_start: 1, new_lines: 2, lines: ["+b", "+c"] }] })
  })

  test("a subagent's edits have no structured result: their size comes from the input", () => {
    expect(effectsOf("Edit", { file_path: "/f", old_string: "a", new_string: "b\nc" }, "updated").effects).toEqual([
      { ...edited, added: 2, removed: 1 },
    ])
    expect(effectsOf("NotebookEdit", { notebook_path: "/f", new_source: "x" }, "updated").effects).toEqual([edited])
    expect(effectsOf("Write", { file_path: "/f", content: "x" }, "The file /f has been updated.").effects).toEqual([
      edited,
    ])
  })

  test("a failed edit, whose toolUseResult is a string, has no effect", () => {
    const failed = effectsOf(
      "Edit",
      { file_path: "/f" },
      "<tool_use_error>String to replace not found</tool_use_error>",
      { toolUseResult: "Error: String to replace not found" },
      { is_error: true },
    )
    expect(failed.effects).toEqual([])
    expect(failed.result).toMatchObject({ is_error: true, tool: "Edit" })
  })

  test("removes the advice after a Read, but not such text in the file itself", () => {
    const read = (content: string) => effectsOf("Read", { file_path: "/f" }, content)
    const advice = "\n\n<system-reminder>\nConsider malware.\n</system-reminder>\n"
    expect(read(`     1→x${advice}`).result.text).toBe("     1→x")
    expect(read("     1→<system-reminder>a</system-reminder>").result.text).toBe(
      "     1→<system-reminder>a</system-reminder>",
    )
    expect(read("x").effects).toEqual([{ type: "file", path: "/f", action: "read", call_id: "toolu_1" }])
  })

  test("a result may come before its call, and a second result has no effects", () => {
    const parsed = session((main) => {
      main.result("t1", "[main 1a2b3c4] x")
      main.answer("msg_1", [call("t1", "Bash", { command: "git commit" })])
      main.result("t1", "[main 1a2b3c4] x")
    })
    expect(parsed.messages[0]!.parts[0]).toMatchObject({ tool: "Bash" })
    expect(withKey(parsed, "msg_1").effects?.map((effect) => effect.type)).toEqual(["command", "commit"])
  })

  test("a pull request that is linked repeatedly is one effect of the answer before it", () => {
    const link = { type: "pr-link", prNumber: 1, prUrl: "https://e.test/1", prRepository: "o/r" }
    const parsed = session((main) => {
      main.plain(link)
      main.answer("msg_1", [text("a")])
      main.plain(link)
      main.answer("msg_2", [text("b")])
      main.plain({ ...link, prUrl: "https://e.test/2" })
    })
    expect(parsed.messages.map((message) => message.effects)).toEqual([
      [{ type: "pull_request", url: "https://e.test/1" }],
      [{ type: "pull_request", url: "https://e.test/2" }],
    ])
  })

  test("an attached file is a mention of the prompt, and its copy is not stored", () => {
    const parsed = session((main) => {
      main.prompt("look at @a.ts")
      main.add({
        type: "attachment",
        attachment: { type: "file", filename: "/p/a.ts", content: { file: { content: "long" } } },
      })
    })
    expect(parsed.messages[0]!.effects).toEqual([{ type: "file", path: "/p/a.ts", action: "mentioned" }])
  })

  test("a remote tool's result is from the web", () => {
    expect(effectsOf("mcp__linear__get", {}, "x").result.origin).toBe("web")
    expect(effectsOf("WebFetch", {}, "x").result.origin).toBe("web")
  })
})

describe("outputs too large for the transcript", () => {
  const preview = (path: string) =>
    `<persisted-output>\nOutput too large (2MB). Full output saved to: ${path}\n\nPreview (first 2KB):\nline\n</persisted-output>`
  const spill = (path: string, prepare: (home: string, folder: string) => void, structured: RawRecord = {}) => {
    const home = tempDir()
    const folder = `.claude/projects/${PROJECT}/${SESSION}/tool-results`
    prepare(home, folder)
    const main = writer()
    main.answer("m", [call("t", "Bash", { command: "x" })])
    main.result("t", preview(path), { toolUseResult: structured })
    putSession(home, main.records)
    return conversations(home)[0]!.messages.at(-1)!.parts[0]!.text
  }

  test("are read from the session's own folder, whatever the path says", () => {
    const put1 = (home: string, folder: string) => put(home, `${folder}/b1.txt`, "the whole output")
    expect(spill("/Users/old/.claude/projects/p/s/tool-results/b1.txt", put1)).toBe("the whole output")
    expect(spill("C:\\Users\\x\\tool-results\\b1.txt", put1)).toBe("the whole output")
  })

  test("are never read from anywhere else", () => {
    const outside = (home: string, folder: string) => {
      put(home, "secret.txt", "secret")
      put(home, `.claude/projects/${PROJECT}/${SESSION}/secret.txt`, "secret")
      put(home, `${folder}/binary`, "a\0b")
      symlinkSync(join(home, "secret.txt"), join(home, folder, "link.txt"))
    }
    for (const path of ["../secret.txt", "/etc/passwd", "link.txt", "..", ".", "binary", "gone.txt"]) {
      expect(spill(path, outside)).toBe(preview(path))
    }
  })

  test("are not read through a folder that is a link", () => {
    const linked = (home: string, folder: string) => {
      put(home, "elsewhere/x.txt", "secret")
      mkdirSync(join(home, folder, ".."), { recursive: true })
      symlinkSync(join(home, "elsewhere"), join(home, folder))
    }
    expect(spill("x.txt", linked)).toBe(preview("x.txt"))
  })

  test("are cut at a megabyte, and say so", () => {
    const big = (home: string, folder: string) => put(home, `${folder}/x.txt`, "y".repeat(1_000_100))
    const output = spill("x.txt", big)
    expect(output.length).toBeLessThan(1_000_100)
    expect(output).toMatch(/y\n\[dex: 100 bytes not kept\]$/)
  })

  test("that are gone are replaced by the structured result", () => {
    const stdout = "line\n".repeat(500)
    expect(spill("gone.txt", () => {}, { stdout, stderr: "" })).toBe(stdout)
  })

  test("of a subagent are in the folder of its session", () => {
    const home = tempDir()
    const agent = writer({ isSidechain: true, agentId: "a1" })
    agent.answer("m", [call("t", "Bash", { command: "x" })])
    agent.result("t", preview("/gone/b2.txt"))
    const dir = `.claude/projects/${PROJECT}/${SESSION}`
    put(home, `${dir}/subagents/workflows/w/agent-a1.jsonl`, agent.records)
    put(home, `${dir}/tool-results/b2.txt`, "whole")
    expect(conversations(home)[0]!.messages.at(-1)!.parts[0]!.text).toBe("whole")
  })
})

describe("subagents", () => {
  const progress = (message: RawRecord, agentId = "a1", normalizedMessages: unknown[] = []) => ({
    type: "progress",
    data: { type: "agent_progress", agentId, prompt: "Look", message, normalizedMessages },
    parentToolUseID: "task",
  })
  const step = (uuid: string, type: string, message: RawRecord) => ({
    type,
    uuid,
    timestamp: "2026-01-02T10:00:00.000Z",
    message,
  })
  const steps = [
    step("s1", "user", { content: "Look" }),
    step("s2", "assistant", { id: "msg_s", content: [call("t", "Bash", { command: "ls" })] }),
    step("s3", "user", { content: [{ type: "tool_result", tool_use_id: "t", content: "a.ts" }] }),
    step("s4", "assistant", { id: "msg_end", content: [text("Found a.ts")] }),
  ]

  test("that exist only in their parent's progress records become conversations", () => {
    const home = tempDir()
    const main = writer()
    main.answer("m", [call("task", "Task", { description: "Find files", prompt: "Look" })])
    for (const one of steps) main.add(progress(one))
    putSession(home, main.records)
    const [parent, agent] = conversations(home)
    expect(parent!.messages.length).toBe(1)
    expect(agent).toMatchObject({
      id: "a1",
      kind: "subagent",
      parent: { id: SESSION, call_id: "task" },
      title: { text: "Find files", from: "agent" },
      cwds: ["/home/dev/proj"],
      authority: 5,
    })
    expect(lines(agent!)).toEqual([
      "user agent:Look",
      'assistant tool_call agent:{"command":"ls"}',
      "tool tool_result local_tool:a.ts",
      "assistant agent:Found a.ts",
    ])
  })

  test("have the same keys in their own file, which outranks the parent's copy", () => {
    const home = tempDir()
    const main = writer()
    main.answer("m", [call("task", "Task", { prompt: "Look" })])
    for (const one of steps) main.add(progress(one))
    putSession(home, main.records)
    const own = steps.map((one) => ({ ...one, isSidechain: true, agentId: "a1", sessionId: SESSION }))
    put(home, `.claude/projects/${PROJECT}/${SESSION}/subagents/agent-a1.jsonl`, own)
    const [file, copy] = conversations(home).filter((conversation) => conversation.id === "a1")
    expect(file!.messages).toEqual(copy!.messages)
    expect([file!.authority, copy!.authority]).toEqual([10, 5])
    expect(file!.parent).toEqual(copy!.parent)
  })

  test("of some builds have text only in normalizedMessages, repeatedly", () => {
    const home = tempDir()
    const main = writer()
    const spoken = step("s0", "assistant", { id: "msg_s", content: [text("I list them.")] })
    main.prompt("go")
    main.add(progress(steps[0]!))
    for (const one of steps.slice(1)) main.add(progress(one, "a1", [steps[0], spoken, steps[1], steps[2]]))
    putSession(home, main.records)
    const parsed = readHome(home)[0]!
    expect(lines(parsed.conversations[1]!)[1]).toBe('assistant agent:I list them. | tool_call agent:{"command":"ls"}')
    expect(parsed.conversations[1]!.messages.length).toBe(4)
    expect(JSON.stringify(parsed.records).match(/a\.ts/g)!.length).toBe(2) // the result and the answer, each once
  })

  test("are linked to the call that started them by meta.json, or by the parent's transcript", () => {
    const home = tempDir()
    const dir = `.claude/projects/${PROJECT}`
    const agent = writer({ isSidechain: true })
    agent.prompt("Look")
    put(home, `${dir}/${SESSION}/subagents/agent-a1.jsonl`, agent.records)
    put(
      home,
      `${dir}/${SESSION}/subagents/agent-a1.meta.json`,
      JSON.stringify({ agentType: "x", description: "Find", toolUseId: "task1" }),
    )
    put(home, `${dir}/${SESSION}/subagents/agent-a2.jsonl`, agent.records)
    put(home, `${dir}/${SESSION}/subagents/agent-a2.meta.json`, JSON.stringify({ agentType: "x", spawnDepth: 1 }))
    put(home, `${dir}/agent-a3.jsonl`, agent.records)
    const main = writer()
    main.prompt("go")
    main.result("task2", "launched", { toolUseResult: { isAsync: true, agentId: "a2" } })
    main.add(progress(steps[0]!, "a3"))
    putSession(home, main.records)
    const parents = conversations(home).map(({ id, parent, title }) => [id, parent?.id, parent?.call_id, title?.text])
    expect(parents).toContainEqual(["a1", SESSION, "task1", "Find"])
    expect(parents).toContainEqual(["a2", SESSION, "task2", undefined])
    expect(parents).toContainEqual(["a3", SESSION, "task", undefined])
  })

  test("whose call is unknown are linked by a later read, once", () => {
    const home = tempDir()
    const agent = writer({ isSidechain: true })
    agent.prompt("Look")
    put(home, `.claude/projects/${PROJECT}/${SESSION}/subagents/agent-a1.jsonl`, agent.records)
    const unit = readHome(home)[0]!.unit
    const read = (after?: Parameters<typeof claudeCodeConnector.read>[1]) => {
      const reading = claudeCodeConnector.read(unit, after) as Exclude<
        ReturnType<typeof claudeCodeConnector.read>,
        Promise<unknown>
      >
      return { records: [...reading.records], ...reading.end() }
    }
    const first = read()
    expect(first.records.length).toBe(1)
    putSession(home, [
      {
        type: "user",
        uuid: "r",
        message: { content: [{ type: "tool_result", tool_use_id: "task" }] },
        toolUseResult: { agentId: "a1" },
      },
    ])
    const second = read(first.cursor)
    expect(second.records).toMatchObject([{ type: "dex-subagent", toolUseId: "task" }])
    expect(read(second.cursor).records).toEqual([])
    expect(claudeCodeConnector.parse([...first.records, ...second.records], unit).conversations[0]!.parent).toEqual({
      id: SESSION,
      call_id: "task",
    })
  })

  test("of 1.0.x are inline, without an id: each chain is a conversation", () => {
    const home = tempDir()
    const main = writer()
    main.answer("m", [call("t1", "Task", { prompt: "one" }), call("t2", "Task", { prompt: "two" })])
    const chains = ["one", "two"].map((prompt) => {
      const side = writer({ isSidechain: true }, `${prompt}-`)
      side.prompt(prompt)
      side.answer(`msg_${prompt}`, [text(`did ${prompt}`)])
      return side.records
    })
    const mixed = [0, 1].flatMap((index) => chains.map((chain) => chain[index]!))
    putSession(home, [...main.records, ...mixed])
    const [parent, ...sides] = conversations(home)
    expect(parent!.messages.length).toBe(1)
    expect(sides.map((side) => [side.id, side.parent?.call_id, side.messages.length])).toEqual([
      ["one-1", "t1", 2],
      ["two-1", "t2", 2],
    ])
  })
})

describe("the parentUuid chain", () => {
  const abandonedKeys = (parsed: Conversation) =>
    parsed.messages.filter((message) => message.abandoned).map((message) => message.key)

  test("going back and typing another prompt abandons the first one's branch", () => {
    const parsed = session((main) => {
      main.prompt("one")
      main.answer("a1", [text("1")])
      const fork = main.last()
      main.prompt("two, wrong") // u3
      main.answer("a2", [text("2"), call("t", "Bash", {})])
      main.result("t", "x") // u6
      main.goTo(fork)
      main.prompt("two, right")
      main.answer("a3", [text("3")])
    })
    expect(abandonedKeys(parsed)).toEqual(["u3", "a2", "u6"])
  })

  test("hooks' progress is part of the chain, although its content is not stored", () => {
    const parsed = session((main) => {
      const hook = () => main.add({ type: "progress", data: { type: "hook_progress", hookName: "Stop" } })
      main.prompt("one")
      main.answer("a1", [text("1")])
      hook()
      const fork = main.last()
      main.prompt("two, wrong")
      main.answer("a2", [text("2")])
      hook()
      main.add({ type: "system", subtype: "turn_duration" })
      main.prompt("three")
      main.goTo(fork)
      main.prompt("two, right")
    })
    expect(abandonedKeys(parsed)).toEqual(["u4", "a2", "u8"])
  })

  test("forks by parallel calls and their results do not abandon anything", () => {
    const parsed = session((main) => {
      main.prompt("go")
      const [one, two] = main.answer("a1", [call("t1", "Bash", {}), call("t2", "Bash", {})])
      main.goTo(String(one!.uuid))
      main.result("t1", "1")
      main.goTo(String(two!.uuid))
      main.result("t2", "2")
      main.answer("a2", [text("done")])
      main.prompt("next")
    })
    expect(abandonedKeys(parsed)).toEqual([])
  })

  test("messages before a compaction are not abandoned", () => {
    const parsed = session((main) => {
      main.prompt("one")
      main.answer("a1", [text("1")])
      const before = main.last()
      main.goTo(null)
      main.add({ type: "system", subtype: "compact_boundary", logicalParentUuid: before })
      main.prompt("summary", { isCompactSummary: true })
      main.prompt("two")
    })
    expect(abandonedKeys(parsed)).toEqual([])
  })

  test("a branch abandoned before a compaction is still recognised after it", () => {
    const parsed = session((main) => {
      main.prompt("one")
      main.answer("a1", [text("1")])
      const fork = main.last()
      main.prompt("two, wrong")
      main.goTo(fork)
      main.prompt("two, right")
      const before = main.last()
      main.goTo(null)
      main.add({ type: "system", subtype: "compact_boundary", logicalParentUuid: before })
      main.prompt("three")
    })
    expect(abandonedKeys(parsed)).toEqual(["u3"])
  })

  test("if a link is missing, nothing is marked as abandoned", () => {
    const parsed = session((main) => {
      main.prompt("one")
      main.goTo("lost")
      main.prompt("two, wrong")
      main.answer("a2", [text("2")])
      main.goTo("lost")
      main.prompt("two, right")
    })
    expect(abandonedKeys(parsed)).toEqual([])
  })

  test("commands such as /exit, which are not parents of the next prompt, are not abandoned", () => {
    const parsed = session((main) => {
      main.prompt("one")
      main.answer("a1", [text("1")])
      const end = main.last()
      main.prompt("<local-command-caveat>Caveat</local-command-caveat>", { isMeta: true })
      main.prompt("<command-name>/exit</command-name>")
      main.goTo(end)
      main.prompt("<command-name>/ide</command-name>")
      main.goTo(end)
      main.prompt("two")
    })
    expect(abandonedKeys(parsed)).toEqual([])
  })

  test("a cyclic chain is read to its end", () => {
    const parsed = session((main) => {
      main.prompt("one", { uuid: "x", parentUuid: "y" })
      main.prompt("two", { uuid: "y", parentUuid: "x" })
    })
    expect(parsed.messages.length).toBe(2)
  })
})

describe("copies", () => {
  test("a record that is twice in a file counts once", () => {
    const home = tempDir()
    const main = writer()
    main.prompt("one")
    main.answer("a1", [text("1")])
    putSession(home, [...main.records, ...main.records])
    expect(conversations(home).flatMap(lines)).toEqual(["user person:one", "assistant agent:1"])
  })

  test("a fork's copies have the keys of the original, even under new uuids", () => {
    const home = tempDir()
    const main = writer()
    main.prompt("one")
    main.answer("a1", [text("1")])
    putSession(home, main.records)
    const fork = "22222222-2222-4333-8444-555555555555"
    const copies = main.records.map((record, index) => ({
      ...record,
      uuid: `new${index}`,
      sessionId: fork,
      forkedFrom: { sessionId: SESSION, messageUuid: record.uuid },
    }))
    putSession(home, copies, fork)
    const [original, copy] = conversations(home)
    expect(copy!.messages).toEqual(original!.messages)
    expect(copy!.fork_of).toBe(SESSION)
    expect(original!.fork_of).toBeUndefined()
  })

  test("a background handoff repeats the chain under a new session id with the same keys", () => {
    const home = tempDir()
    const main = writer()
    main.prompt("one")
    putSession(home, main.records)
    const other = "22222222-2222-4333-8444-555555555555"
    putSession(
      home,
      main.records.map((record) => ({ ...record, sessionId: other, sessionKind: "bg" })),
      other,
    )
    const [first, second] = conversations(home)
    expect(first!.messages).toEqual(second!.messages)
    expect(first!.id).not.toBe(second!.id)
  })
})

describe("facts about a conversation", () => {
  const titled = (...records: RawRecord[]) =>
    session((main) => {
      main.prompt("first prompt\nwith a second line")
      for (const record of records) main.plain(record)
    }).title

  test("titles: the person's, then the agent's, then a summary of this file", () => {
    const custom = { type: "custom-title", customTitle: "Custom" }
    const name = { type: "agent-name", agentName: "Name" }
    const ai = { type: "ai-title", aiTitle: "Made" }
    const summary = { type: "summary", summary: "Summed up", leafUuid: "u1" }
    expect(titled(summary, ai, name, custom)).toEqual({ text: "Custom", from: "person" })
    expect(titled(custom, { ...custom, customTitle: "Later" }, ai)).toEqual({ text: "Later", from: "person" })
    expect(titled(summary, ai, name)).toEqual({ text: "Name", from: "person" })
    expect(titled(summary, ai)).toEqual({ text: "Made", from: "agent" })
    expect(titled(summary)).toEqual({ text: "Summed up", from: "summary" })
    expect(titled()).toBeUndefined()
  })

  test("a summary whose leaf is not in this file is another conversation's title", () => {
    expect(titled({ type: "summary", summary: "Another", leafUuid: "elsewhere" })).toBeUndefined()
  })

  test("has every working directory, the last named branch and the version", () => {
    const parsed = session((main) => {
      main.prompt("a", { cwd: "/one", gitBranch: "main", version: "2.1.1" })
      main.prompt("b", { cwd: "/two", gitBranch: "topic", version: "2.1.2" })
      main.prompt("c", { cwd: "/one", gitBranch: "" })
      main.plain({ type: "relocated", relocatedCwd: "/three" })
      main.plain({ type: "worktree-state", worktreeSession: { originalCwd: "/one", worktreePath: "/four" } })
    })
    expect(parsed).toMatchObject({
      cwds: ["/one", "/two", "/three", "/four"],
      git_branch: "topic",
      agent_version: "2.1.42",
    })
    expect([parsed.started_at, parsed.ended_at]).toEqual([parsed.messages[0]!.at, parsed.messages[2]!.at])
  })

  test("a pointer to the session in which a background job continues is known, stored, and not a message", () => {
    const pointer = { type: "continued-in", sessionId: "s", continuedInSessionId: "t" }
    const user = { type: "user", uuid: "u1", message: { role: "user", content: "Find the quolls" } }
    const { conversations, unknown } = claudeCodeConnector.parse([user, pointer], { key: "p/s.jsonl", path: "s.jsonl" })
    expect(unknown).toEqual({})
    expect(conversations.map(({ messages }) => messages.length)).toEqual([1])
    expect(stripClaudeCodeRecord({ ...pointer }, 100)).toEqual(pointer)
  })

  test("a script's conversation is automation, until a person continues it", () => {
    const by = (...entrypoints: string[]) =>
      session((main) => {
        for (const entrypoint of entrypoints) main.prompt("x", { entrypoint })
      }).kind
    expect(by("sdk-cli")).toBe("automation")
    expect(by("sdk-py", "sdk-py")).toBe("automation")
    expect(by("sdk-cli", "cli")).toBe("person")
    expect(by("claude-desktop")).toBe("person")
  })

  test("a file without messages is not a conversation", () => {
    const home = tempDir()
    putSession(home, [
      { type: "summary", summary: "x", leafUuid: "y" },
      { type: "mode", mode: "normal" },
    ])
    expect(readHome(home)[0]).toMatchObject({ conversations: [], unknown: {} })
  })

  test("a hook's text is injected, and cut", () => {
    const parsed = session((main) => {
      main.prompt("go")
      main.add({ type: "attachment", attachment: { type: "hook_additional_context", content: ["x".repeat(9000)] } })
      main.add({ type: "attachment", attachment: { type: "hook_success", stdout: "{}" } })
    })
    expect(parsed.messages.length).toBe(2)
    expect(parsed.messages[1]!.parts[0]).toMatchObject({ origin: "injected" })
    expect(parsed.messages[1]!.parts[0]!.text.length).toBeLessThan(2100)
  })
})

describe("the stored part of a record", () => {
  const kept = (record: RawRecord) => {
    const line = JSON.stringify(record)
    if (!isWantedLine(line)) return undefined
    const stripped = stripClaudeCodeRecord(parseLine(line)!, line.length)
    return stripped && JSON.stringify(stripped)
  }
  const user = (content: unknown, toolUseResult: unknown) => ({
    type: "user",
    uuid: "u",
    message: { role: "user", content },
    toolUseResult,
  })
  const result = (content: unknown) => [{ type: "tool_result", tool_use_id: "t", content }]

  test("drops copies of files, signatures and todo lists", () => {
    const bulk = "BULK ".repeat(40)
    const edit = {
      filePath: "/f",
      oldString: bulk,
      newString: bulk,
      originalFile: `${bulk}"quoted" \\ end`,
      structuredPatch: [],
      userModified: false,
    }
    expect(kept(user(result("updated"), edit))).not.toContain("BULK")
    expect(kept(user(result("ok"), { oldTodos: [bulk], newTodos: [bulk] }))).not.toContain("BULK")
    expect(
      kept({ type: "assistant", message: { content: [{ type: "thinking", thinking: "t", signature: bulk }] } }),
    ).not.toContain("BULK")
    expect(
      kept({ type: "user", todos: [bulk], thinkingMetadata: { bulk }, slug: bulk, message: { content: "x" } }),
    ).not.toContain("BULK")
    expect(
      kept({ type: "attachment", attachment: { type: "skill_listing", content: bulk.repeat(3) }, rendered: [bulk] }),
    ).not.toContain("BULK")
    expect(kept({ type: "system", subtype: "stop_hook_summary", hookInfos: [bulk] })).not.toContain("BULK")
  })

  test("keeps from the structured result only what the tool_result does not have", () => {
    const output = "OUTPUT ".repeat(30)
    const count = (line: string | undefined) => line!.split(output.trim()).length - 1
    expect(count(kept(user(result(output), { stdout: `${output}\n`, stderr: "" })))).toBe(1)
    expect(count(kept(user(result([text(output)]), [text(output)])))).toBe(1)
    expect(count(kept(user(result(`Error: ${output}`), `Error: ${output}`)))).toBe(1)
    expect(
      count(kept(user(result(`     1→${output}`), { type: "text", file: { filePath: "/f", content: output } }))),
    ).toBe(1)
    expect(count(kept(user(result("<persisted-output>"), { stdout: output })))).toBe(1)
    expect(kept(user(result("a"), { structuredPatch: [], userModified: true, newString: "by hand" }))).toContain(
      "by hand",
    )
  })

  test("a field called originalFile that is not an edit's copy is unchanged", () => {
    const input = { type: "assistant", message: { content: [call("t", "mcp__x", { originalFile: 'my "file"' })] } }
    expect(kept(input)).toContain('my \\"file\\"')
    expect(kept(user(result("x"), { nested: { originalFile: "deep" } }))).toContain("deep")
    const both = user([{ type: "text", text: 'say "originalFile":"x"' }], { originalFile: "copy" })
    expect(kept(both)).toContain("say")
    expect(kept(both)).not.toContain("copy")
  })

  test("a text over a megabyte is cut, with a note of the size", () => {
    const line = kept(user(result("z".repeat(1_200_000)), undefined))!
    expect(line.length).toBeLessThan(1_001_000)
    expect(line).toMatch(/\[dex: 200000 characters not kept, sha256 [0-9a-f]{64}\]/)
  })

  test("a session's total cost is stored, but is not a message", () => {
    const cost = {
      type: "cost-state",
      sessionId: "s",
      totalCostUSD: 0.004,
      modelUsage: { m: { webSearchRequests: 1 } },
    }
    expect(kept(cost)).toContain('"totalCostUSD":0.004,"modelUsage":{"m":{"webSearchRequests":1}}')
    expect(claudeCodeConnector.parse([cost], { key: "p/s.jsonl", path: "" })).toEqual({
      conversations: [],
      unknown: {},
    })
  })

  test("copies of requests and snapshots are skipped and not counted as unknown", () => {
    for (const type of [
      "api-request",
      "api-request-shape",
      "api-request-blob",
      "tools-used",
      "atis-latch",
      "file-history-snapshot",
      "permission-mode",
      "mode",
      "bridge-session",
    ]) {
      expect(kept({ type, message: { role: "user", content: "doubled" } })).toBeUndefined()
      expect(kept({ sessionId: "s", type, message: { role: "user", content: "doubled" } })).toBeUndefined()
    }
  })

  const tick = {
    parentUuid: "p",
    isSidechain: false,
    cwd: "/x",
    type: "progress",
    data: { type: "bash_progress", output: 'a "b" {"c', fullOutput: "x" },
    uuid: "t",
  }

  test("skips ticks by their text, but not a subagent's messages or hooks' links", () => {
    expect(isWantedLine(JSON.stringify(tick))).toBe(false)
    expect(isWantedLine(JSON.stringify({ ...tick, data: { type: "agent_progress", message: {} } }))).toBe(true)
    expect(kept({ ...tick, data: { type: "hook_progress", command: "long" } })).toBe(
      '{"type":"progress","uuid":"t","parentUuid":"p","data":{"type":"hook_progress"}}',
    )
  })

  test("a tick is skipped only if it is the entire line", () => {
    const line = JSON.stringify(tick)
    const other = JSON.stringify({ type: "summary", summary: "s", leafUuid: "l" })
    expect(isWantedLine(line + other)).toBe(true)
    expect(isWantedLine(line.slice(0, -20) + other)).toBe(true)
    expect(isWantedLine(line.slice(0, -3))).toBe(true) // torn: to be counted
    expect(isWantedLine(`{"type":"mode","mode":"x"}${other}`)).toBe(true)
    expect(isWantedLine(`{"type":"mode","mo${other}`)).toBe(true)
    expect(isWantedLine(JSON.stringify({ type: "assistant", message: { content: [call("t", "X", tick)] } }))).toBe(true)
    expect(isWantedLine(JSON.stringify({ uuid: "u", toolUseResult: tick, type: "user" }))).toBe(true)
    expect(isWantedLine(JSON.stringify({ uuid: "u", message: { content: line }, type: "user" }))).toBe(true)
  })

  test("a summary that shares its line with a tick is read", () => {
    const home = tempDir()
    const main = writer()
    main.prompt("go")
    const summary = { type: "summary", summary: "The title", leafUuid: "u1" }
    const path = `.claude/projects/${PROJECT}/${SESSION}.jsonl`
    put(home, path, `${jsonl(main.records)}${JSON.stringify(tick)}${JSON.stringify(summary)}\n`)
    expect(readHome(home)[0]).toMatchObject({ skipped: 1, conversations: [{ title: { text: "The title" } }] })
  })
})

describe("unknown records", () => {
  test("are counted by kind, and the rest is read", () => {
    const home = tempDir()
    const main = writer()
    main.prompt("go")
    main.plain({ type: "tool_use", name: "bash" })
    main.plain({ no: "type", at: "all" })
    main.add({ type: "attachment", attachment: { type: "brand_new" } })
    main.add({ type: "system", subtype: "brand_new", content: "Something happened" })
    main.add({ type: "progress", data: { type: "brand_new" } })
    main.answer("m", [{ type: "brand_new" }, text("hi")])
    putSession(home, main.records)
    const parsed = readHome(home)[0]!
    expect(parsed.unknown).toEqual({
      tool_use: 1,
      untyped: 1,
      "attachment:brand_new": 1,
      "system:brand_new": 1,
      "progress:brand_new": 1,
      "block:brand_new": 1,
    })
    expect(lines(parsed.conversations[0]!)).toEqual([
      "user person:go",
      "system injected:Something happened",
      "assistant agent:hi",
    ])
  })

  test("never throw, whatever their fields contain", () => {
    const types = [
      "user",
      "assistant",
      "system",
      "attachment",
      "progress",
      "queue-operation",
      "summary",
      "pr-link",
      "dex-spilled",
      "dex-subagent",
      "worktree-state",
    ]
    const value = fc.oneof(
      { depthSize: "small" },
      fc.jsonValue(),
      fc.constantFrom("u1", "u2", "tool_result", "tool_use"),
    )
    const block = fc.record(
      {
        type: fc.constantFrom("text", "tool_use", "tool_result", "image", "thinking", 7),
        text: value,
        id: value,
        tool_use_id: value,
        content: value,
        source: value,
        input: value,
        name: value,
      },
      { requiredKeys: ["type"] },
    )
    const message = fc.oneof(
      value,
      fc.record(
        { id: value, content: fc.oneof(value, fc.array(block, { maxLength: 3 })), usage: value, model: value },
        { requiredKeys: [] },
      ),
    )
    const data = fc.oneof(
      value,
      fc.record({
        type: fc.constantFrom("agent_progress", "hook_progress"),
        agentId: value,
        message: fc.record({ type: fc.constantFrom("user", "assistant"), message, uuid: value }),
        normalizedMessages: value,
      }),
    )
    const record = fc.record(
      {
        type: fc.constantFrom(...types),
        uuid: value,
        parentUuid: value,
        message,
        data,
        attachment: fc.oneof(
          value,
          fc.record({
            type: fc.constantFrom("queued_command", "file", "hook_blocking_error"),
            prompt: value,
            filename: value,
          }),
        ),
        toolUseResult: value,
        operation: fc.constantFrom("enqueue", "popAll"),
        content: value,
        timestamp: value,
        isSidechain: value,
        forkedFrom: value,
        worktreeSession: value,
        isMeta: value,
        supersedesUuids: value,
      },
      { requiredKeys: ["type"] },
    )
    fc.assert(
      fc.property(
        fc.array(record, { maxLength: 12 }),
        fc.constantFrom(`p/${SESSION}.jsonl`, "p/s/subagents/agent-a.jsonl", ".claude/history.jsonl"),
        (all, key) => {
          const records = (all as RawRecord[]).flatMap((raw): RawRecord[] => {
            const kept = stripClaudeCodeRecord(structuredClone(raw), 100)
            return kept ? [kept] : []
          })
          const copied = JSON.parse(JSON.stringify(records)) as RawRecord[]
          const parsed = claudeCodeConnector.parse(copied, { key, path: key })
          for (const conversation of parsed.conversations) {
            const keys = conversation.messages.map((one) => one.key)
            expect(new Set(keys).size).toBe(keys.length)
          }
          expect(claudeCodeConnector.parse(records, { key, path: key })).toEqual(parsed)
        },
      ),
      { numRuns: 300 },
    )
  })
})

const samples = fileURLToPath(new URL("../../../shared/samples/claude-code", import.meta.url))
if (!existsSync(samples)) console.log("NOT RUN: the samples of other projects are not here")

test.skipIf(!existsSync(samples))("other projects' samples have no unexpected unknown records", () => {
  const home = tempDir()
  const dir = join(home, ".claude/projects/samples")
  mkdirSync(dir, { recursive: true })
  for (const name of readdirSync(samples)) {
    if (name.endsWith(".jsonl")) writeFileSync(join(dir, name), readFileSync(join(samples, name)))
  }
  const unknown = readHome(home).map(({ unit, unknown: counts }) => [unit.key.split("/").at(-1), counts])
  expect(unknown.filter(([, counts]) => Object.keys(counts as object).length > 0)).toEqual([
    ["ccl-edge_cases.jsonl", { untyped: 1 }],
    ["schema-drift-unknown-types.jsonl", { tool_use: 1, tool_result: 1 }],
  ])
})
