import { expect, test } from "vitest"
import { claudeAiConnector } from "../../packages/more-agents/src/claude-ai.ts"
import { onFixtures } from "../support/exports.ts"
import { sampleAt } from "../support/samples.ts"
import { conversationsOf, testConnector } from "./contract.ts"

const connector = onFixtures(claudeAiConnector)
testConnector(connector, "test/fixtures/claude_ai")

const sample = sampleAt("claude-ai/synthetic")
test.skipIf(sample === undefined)(
  "reads a sample written from a description: an attachment and a thought",
  async () => {
    const read = await conversationsOf(Object.assign(Object.create(connector), { roots: () => [sample!] }), "/none")
    expect([...read.values()]).toMatchObject([
      {
        title: { text: "Sort in Rust" },
        messages: [
          { parts: [{ origin: "person" }, { text: "a.rs:\nfn main(){}", origin: "local_tool" }] },
          { parts: [{ type: "thinking" }, { text: "Use sort()" }] },
        ],
      },
    ])
  },
)
