import { hookFields } from "../src/agents/hooks.ts"
import { agentOf } from "../src/agents/registry.ts"
import { contextText } from "../src/serve/hooks/main.ts"

// Stands in for `dex hook` where every moment must be answered: reads and writes as dex does, and always has one thing to say.

const [source, event] = process.argv.slice(2) as [string, string]
let stdin = ""
for await (const chunk of process.stdin) stdin += chunk
const agent = await agentOf(source)!.hooks!()
const moment = agent.moment(event, hookFields(JSON.parse(stdin)))
if (moment)
  process.stdout.write(
    agent.answer(
      event,
      contextText([
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
      ]),
    ),
  )
