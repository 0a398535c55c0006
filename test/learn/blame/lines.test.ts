import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { lineKey } from "../../../src/learn/blame/line-key.ts"
import { shellEdits } from "../../../src/learn/blame/lines-in.ts"
import { learn } from "../../../src/learn/learn.ts"
import { openStore } from "../../../src/store/history/sqlite-history.ts"
import type { ConversationWrite, MessageWrite } from "../../../src/store/history/store.ts"
import { type Knowledge, openKnowledge } from "../../../src/store/knowledge/knowledge.ts"
import { conversation, textMessage, unit } from "../../support/conversations.ts"
import { openKnowledgeFile } from "../../support/inside.ts"
import { tempDir } from "../../support/temp.ts"

const PROJECT = "/code/api"

describe("the key of a line", () => {
  test("ignores white space, and differs for other words", () => {
    expect(lineKey("\tconst total = sum(a, b)")).toBe(lineKey("  const  total=sum( a,b )  \r"))
    expect(lineKey("const total = sum(a, b)")).not.toBe(lineKey("const total = sum(a, c)"))
  })

  test("is 0 for a line that is too short to attribute", () => {
    for (const line of ["", "  }", "});", "\t)\t"]) expect(lineKey(line)).toBe(0)
    expect(lineKey("else")).not.toBe(0)
  })
})

describe("lines that a shell wrote", () => {
  test.each([
    ["semicolons", ";".repeat(399_990)],
    ["names of programs", `${"cat ".repeat(90_000)}<<EOF\nx\nEOF`],
  ])("a command that is nothing but %s takes no longer than its length", (_, command) => {
    expect(shellEdits(command)).toEqual([]) // in quadratic time: minutes
  })

  test.each([
    ["cat > src/a.ts <<'EOF'\nconst one = 1\nconst two = 2\nEOF", [["src/a.ts", ["const one = 1", "const two = 2"]]]],
    ["cd x && cat <<EOF >> notes.md\nremember\nEOF\nnpm test", [["notes.md", ["remember"]]]],
    ["tee -a 'my file.txt' <<-END\n\tinside\n\tEND", [["my file.txt", ["\tinside"]]]],
    ["sed -i '3a\\  added after three' src/b.ts", [["src/b.ts", ["added after three"]]]],
    ["sed -i 's/one/two/' src/b.ts", []],
    ["echo 'KEY=value of it' >> .env.example && ls", [[".env.example", ["KEY=value of it"]]]],
    ["python3 - <<'EOF'\nprint('no file named')\nEOF", []],
    ["grep -n x src/a.ts > /dev/null", []],
    [
      "git apply <<'EOF'\n--- a/src/c.ts\n+++ b/src/c.ts\n@@ -1,2 +1,2 @@\n keep\n-old line\n+new line\nEOF",
      [["src/c.ts", ["new line"], ["old line"]]],
    ],
    [
      "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: src/d.ts\n@@\n-was here\n+is here\n*** End Patch\nEOF",
      [["src/d.ts", ["is here"], ["was here"]]],
    ],
  ] as [string, [string, string[], string[]?][]][])("%s", (command, expected) => {
    expect(shellEdits(command).map(({ path, added, removed }) => [path, added, removed])).toEqual(
      expected.map(([path, added, removed = []]) => [path, added, removed]),
    )
  })

  test("a here-document inside another one is part of it", () => {
    const command = "cat > a.sh <<'OUTER'\ncat > b.txt <<'INNER'\ninner words\nINNER\nOUTER"
    expect(shellEdits(command).map(({ path }) => path)).toEqual(["a.sh"])
  })
})

function open() {
  const dir = tempDir()
  const store = openStore(join(dir, "history.db"))
  const knowledge = openKnowledge(join(dir, "knowledge.db"))
  onTestFinished(() => {
    store.close()
    knowledge.close()
  })
  const put = (id: string, messages: MessageWrite[], more: Partial<ConversationWrite> = {}, born?: number) =>
    store.writeUnit(
      unit(id, [conversation(id, messages, more)], born === undefined ? {} : { bornAt: born, modifiedAt: born }),
    )
  return { store, knowledge, put }
}

function edited(key: string, path: string, lines: string[]): MessageWrite {
  const hunks = [{ path, old_start: 1, old_lines: 0, new_start: 1, new_lines: lines.length, lines }]
  return textMessage(key, "", {
    role: "tool",
    parts: [{ type: "tool_result", text: "ok", origin: "local_tool", is_error: false, call_id: key, hunks }],
  })
}

function shell(key: string, command: string, failed = false): MessageWrite[] {
  const call = { type: "tool_call", tool: "Bash", text: JSON.stringify({ command }), call_id: key, origin: "agent" }
  const result = { type: "tool_result", text: "", origin: "local_tool", is_error: failed, call_id: key }
  return [
    textMessage(key, "", { role: "assistant", parts: [call as never] }),
    textMessage(`${key}r`, "", { role: "tool", parts: [result as never] }),
  ]
}

function edits(knowledge: Knowledge): { id: string; path: string; added: number[] }[] {
  const workers = new Map(knowledge.lines.lineWorkers(PROJECT).map((one) => [one.conversation, one.id]))
  const files = knowledge.lines.lineFiles(PROJECT)
  return knowledge.lines.editsOfFiles(files.map(({ file }) => file)).map(({ conversation, file, added }) => ({
    id: workers.get(conversation)!,
    path: files.find((one) => one.file === file)!.path,
    added: [...added],
  }))
}

describe("lines that are learned", () => {
  test("come from edits and from shells that did not fail, below the project, without lines that are too short", async () => {
    const { store, knowledge, put } = open()
    await put("A", [
      edited("a1", `${PROJECT}/src/a.ts`, ["+const quokka = 1", "+}", " kept", "-gone line"]),
      ...shell("a2", "cat > src/b.ts <<'EOF'\nconst wombat = 2\nEOF"),
      ...shell("a3", "cat > src/c.ts <<'EOF'\nnever written\nEOF", true),
      edited("a4", "/elsewhere/x.ts", ["+not of this project"]),
    ])
    await learn(store, knowledge)
    expect(edits(knowledge)).toEqual([
      { id: "A", path: "src/a.ts", added: [lineKey("const quokka = 1")] },
      { id: "A", path: "src/b.ts", added: [lineKey("const wombat = 2")] },
    ])
  })

  test("come from messages without a date if the conversation has one", async () => {
    const { store, knowledge, put } = open()
    const { at: _, ...undated } = edited("a1", `${PROJECT}/src/a.ts`, ["+const quokka = 1"])
    await put("A", [undated], { started_at: 1_760_000_000_000 })
    await learn(store, knowledge)
    expect(edits(knowledge)).toMatchObject([{ id: "A", path: "src/a.ts" }])
  })

  test("a worktree elsewhere has the project's files", async () => {
    const { store, knowledge, put } = open()
    await put("A", [edited("a1", "/tmp/tree/src/a.ts", ["+const quokka = 1"])], { cwds: ["/tmp/tree"] })
    await learn(store, knowledge)
    expect(edits(knowledge)).toMatchObject([{ path: "src/a.ts" }])
  })

  test("a message that a fork copied belongs only to the original", async () => {
    const { store, knowledge, put } = open()
    const one = edited("m1", `${PROJECT}/src/a.ts`, ["+const quokka = 1"])
    await put("A", [textMessage("m0", "go"), one], {}, 1_760_000_000_000)
    await put("F", [textMessage("m0", "go"), one, textMessage("f2", "on")], { fork_of: "A" }, 1_760_000_900_000)
    await learn(store, knowledge)
    expect(edits(knowledge)).toMatchObject([{ id: "A" }])
  })

  test("a forgotten conversation leaves no line, commit, time or file name", async () => {
    const { store, knowledge, put } = open()
    await put("A", [
      edited("a1", `${PROJECT}/src/secretname.ts`, ["+const quokka = 1"]),
      textMessage("a2", "", { effects: [{ type: "commit", hash: "abcdef1", subject: "add quokka" }] }),
    ])
    await put("B", [edited("b1", `${PROJECT}/src/kept.ts`, ["+const wombat = 1"])])
    await learn(store, knowledge)
    expect(knowledge.lines.ranCommits(PROJECT)).toMatchObject([{ hash: "abcdef1", subject: "add quokka" }])
    await store.forget([{ source: "claude_code", id: "A" }])
    await learn(store, knowledge)
    knowledge.projects.purgeKnowledge(knowledge.path)
    expect(edits(knowledge)).toMatchObject([{ id: "B" }])
    const count = (table: string) => openKnowledgeFile(knowledge).prepare(`select count(*) from ${table}`).pluck().get()
    expect([count("line_edit"), count("line_work"), count("line_commit")]).toEqual([1, 1, 0])
    expect(openKnowledgeFile(knowledge).prepare("select path from file").pluck().all()).toEqual(["src/kept.ts"])
  })

  test("are learned again when a message is redacted, and only those of the redacted text remain", async () => {
    const { store, knowledge, put } = open()
    await put("A", [edited("a1", `${PROJECT}/src/a.ts`, ["+const token = hunter2secret"])])
    await learn(store, knowledge)
    await put("A", [edited("a1", `${PROJECT}/src/a.ts`, ["+const token = [redacted]"])])
    await learn(store, knowledge)
    expect(edits(knowledge)).toEqual([{ id: "A", path: "src/a.ts", added: [lineKey("const token = [redacted]")] }])
  })
})
