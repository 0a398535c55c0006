import { join } from "node:path"
import { type AgentTrace, agentTraces } from "../../blame/recorded.ts"
import { readStart } from "../../files/read-file.ts"

/** Where agents that follow Agent Trace leave their records. */
const PLACE = ".agent-trace/traces.jsonl"
const MOST_BYTES = 16 << 20

/** What the repository's Agent Trace file says; nothing where there is none, or none that can be read. */
export function readAgentTraces(root: string): AgentTrace[] {
  try {
    return agentTraces(readStart(join(root, PLACE), MOST_BYTES).toString("utf8"))
  } catch {
    return [] // not there, or no regular file
  }
}
