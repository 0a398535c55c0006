import type { SourceId } from "../src/core/conversation.ts"
import { contextText } from "../src/hooks/context-text.ts"
import { fields } from "../src/hooks/hook.ts"
import { AGENT_HOOKS } from "../src/hooks/run.ts"

// Stands in for `dex hook` where every moment must be answered: reads and writes as dex does, and always has one thing to say.

const [source, event] = process.argv.slice(2) as [SourceId, string]
let stdin = ""
for await (const chunk of process.stdin) stdin += chunk
const agent = AGENT_HOOKS[source]!
const moment = agent.moment(event, fields(JSON.parse(stdin)))
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
