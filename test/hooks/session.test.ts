import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import { sessionOf } from "../../src/serve/hooks/main.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { tempDir } from "../support/temp.ts"

const moment = { event: "before_edit", project: "/code/api", source: "claude_code", session: "s", at: 1 } as const

test("distinguishes the session's own words from tools' output, from the end of its transcript", () => {
  const home = tempDir()
  const transcript = join(home, "s.jsonl")
  const lines = [
    { type: "user", message: { content: "long ago: ancient.ts" } },
    { type: "user", message: { content: "x".repeat(600 << 10) } },
    { type: "assistant", message: { content: [{ type: "text", text: "I look at token.ts" }] } },
    { type: "user", message: { content: [{ type: "tool_result", content: "session.ts" }] } },
  ]
  writeFileSync(transcript, lines.map((line) => JSON.stringify(line)).join("\n"))
  const knowledge = openKnowledge(join(home, KNOWLEDGE_FILE))
  const session = sessionOf(knowledge, { ...moment, prompt: "and prompt.ts" }, transcript, new Set(["k"]))
  const names = ["token.ts", "session.ts", "prompt.ts", "ancient.ts"]
  expect(names.filter(session.hasMentioned)).toEqual(["token.ts", "prompt.ts"])
  expect(names.filter(session.hasListed)).toEqual(["session.ts"])
  expect(session.seen.has("k")).toBe(true)
  knowledge.close()
})

test.skipIf(process.platform === "win32")("a transcript that is not a regular file does not block", () => {
  const home = tempDir()
  const pipe = join(home, "pipe")
  execFileSync("mkfifo", [pipe])
  const knowledge = openKnowledge(join(home, KNOWLEDGE_FILE))
  for (const path of [pipe, home, join(home, "missing"), "/dev/zero"])
    expect(sessionOf(knowledge, moment, path, new Set()).hasMentioned("x")).toBe(false)
  knowledge.close()
})
