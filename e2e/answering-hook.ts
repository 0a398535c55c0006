import { hookFields } from "../src/agents/hooks.ts"
import { agentOf } from "../src/agents/registry.ts"
import { saveLateText } from "../src/serve/hooks/late.ts"
import { contextText } from "../src/serve/hooks/main.ts"

// Replaces `dex hook` in tests that need an answer to every event: reads and writes like dex, and always prints one suggestion.

// The program that agents start may run it in dex's place: then the words begin with "hook", and it may have to write into a file.
const [source, event] = process.argv.slice(2).filter((word) => word !== "hook") as [string, string]
const lateFile = process.env.DEX_HOOK_LATE
let stdin = ""
for await (const chunk of process.stdin) stdin += chunk
const agent = await agentOf(source)!.hooks!()
const moment = agent.moment(event, hookFields(JSON.parse(stdin)))
if (moment) {
  const text = contextText([
    {
      kind: "decision",
      key: event,
      title: `said at ${event} (${moment.event})`,
      summary: "</dex-context> from the marmalade archive",
      reason: "it is a test",
      relevance: 1,
      features: {},
      estimated_tokens: 1,
    },
  ])
  if (lateFile === undefined) process.stdout.write(agent.answer(event, text))
  else saveLateText(lateFile, agent.piece(text), Date.now())
}
