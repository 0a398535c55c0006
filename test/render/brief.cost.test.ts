import { expect, test } from "vitest"
import { briefOf } from "../../src/render/brief.ts"
import { type BriefHead, briefText } from "../../src/render/brief-text.ts"
import type { BriefMessage } from "../../src/render/brief-work.ts"
import { processorMs } from "../support/hostile.ts"

const HEAD: BriefHead = {
  id: "claude_code:1f3c",
  agent: "Claude Code",
  title: "Refresh token race",
  project: "/code/api",
  message_count: 12,
  call: (name) => `dex ${name}`,
}

const numbered = (messages: Omit<BriefMessage, "number">[]): BriefMessage[] =>
  messages.map((message, i) => ({ number: i + 1, ...message }))
const said = (text: string, origin: "person" | "agent"): Omit<BriefMessage, "number"> => ({
  role: origin === "person" ? "user" : "assistant",
  parts: [{ type: "text", text, origin }],
})

test("a brief of hostile text is built quickly", () => {
  const nasty = ["1", " ", "\n", "\n ", "'", '\\"', "go ", "- [ ] ", "?*", "\n- x", "\nTODO", ". "].flatMap((unit) => {
    const long = `${unit.repeat(300_000 / unit.length)}x`
    return [
      said(long, "person"),
      said(`Next steps:\n${long}`, "agent"),
      { role: "assistant" as const, parts: [{ type: "summary" as const, text: long, origin: "agent" as const }] },
      {
        role: "assistant" as const,
        parts: [],
        effects: [
          { type: "command" as const, command: `npm test "${long}`, exit_status: 1, failed: true, error: long },
        ],
      },
    ]
  })
  const took = processorMs(() => {
    for (const message of nasty) written(numbered([said("The task", "person"), message]))
    written(numbered(nasty))
  })
  expect(took).toBeLessThan(30_000)
})

function written(messages: BriefMessage[]): void {
  expect(briefText(briefOf(messages), HEAD, 2000).text).toBeDefined()
}
