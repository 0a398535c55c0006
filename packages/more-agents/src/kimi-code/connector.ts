import { join } from "node:path"
import type { Connector, Unit, Unreadable } from "../../../../src/agents/kit/connector.ts"
import {
  objectAt,
  type Report,
  readLines,
  subfolders,
  unitAt,
  unitWithFacts,
  withProblems,
} from "../../../../src/agents/kit/files.ts"
import { cutLongTexts, digestOfDataUri } from "../../../../src/agents/kit/messages.ts"
import { withoutUndefined } from "../../../../src/core/defined.ts"
import { type RawRecord, record, records, string } from "../../../../src/core/record.ts"
import { kimiCodeRoots } from "../records.ts"
import { parseKimiCode } from "./parse.ts"

/** Reads Kimi Code: a folder per session, with a log for each of its agents and a file about the session. */
export const kimiCodeConnector: Connector = {
  source: "kimi_code",
  version: 1,
  roots: kimiCodeRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [{ folder: root, depth: 4, files: /\/(wire\.jsonl|state\.json)$/ }],
  read: readLines(stripLine),
  parse: parseKimiCode,
  // There is no `identify`: a line has no id, so records are compared by content.
}

const MAX_STATE_BYTES = 4 << 20

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  for (const project of subfolders(root, report))
    for (const session of subfolders(join(root, project), report)) {
      const folder = join(root, project, session)
      const state = objectAt(join(folder, "state.json"), MAX_STATE_BYTES, report)
      for (const agent of subfolders(join(folder, "agents"), report)) {
        const path = join(folder, "agents", agent, "wire.jsonl")
        const unit = unitAt(path, `${session}/${agent}`, report)
        if (unit) yield unitWithFacts(unit, state && factsOf(state, agent))
      }
    }
}

function factsOf(state: RawRecord, agent: string): RawRecord {
  const agentState = record(record(state.agents)?.[agent])
  const [title, cwd, parent] = [
    string(state.title),
    string(state.cwd) ?? string(state.workDir),
    agentState?.parentAgentId,
  ]
  return {
    type: "dex-session",
    title: title || undefined,
    isCustomTitle: state.isCustomTitle === true ? true : undefined,
    cwd: cwd || undefined,
    parent: string(parent),
  }
}

/** Removes Kimi Code's own instructions and tools, image bytes, and the content of lines that repeat others. */
function stripLine(line: RawRecord): RawRecord {
  const { tools: _, systemPrompt: __, ...rest } = line
  if (line.type === "agent.message.appended") return { type: line.type, time: line.time }
  const event = record(rest.event)
  if (event) {
    const { display: ___, ...storedEvent } = event
    const result = record(storedEvent.result)
    const output = result && Array.isArray(result.output) ? { ...result, output: stripParts(result.output) } : result
    return cutLongTexts({ ...rest, event: { ...storedEvent, ...withoutUndefined({ result: output }) } })
  }
  const message = record(rest.message)
  if (!message || !Array.isArray(message.content)) return cutLongTexts(rest)
  return cutLongTexts({ ...rest, message: { ...message, content: stripParts(message.content) } })
}

/** Replaces the bytes of images, which are in data URIs, with their digest. */
function stripParts(parts: unknown): RawRecord[] {
  return records(parts).map((part) => {
    const imageUrl = string(record(part.imageUrl)?.url) ?? string(record(part.image_url)?.url)
    const image = imageUrl === undefined ? undefined : digestOfDataUri(imageUrl)
    return image ? { type: part.type, image } : part
  })
}
