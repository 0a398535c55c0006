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
import { type RawRecord, record, records, string } from "../../../../src/core/record.ts"
import { grokRoots } from "../records.ts"
import { parseGrok } from "./parse.ts"

/**
 * Reads Grok: a folder per session, inside a folder per working directory. `updates.jsonl` records step by step what Grok
 * showed.
 */
export const grokConnector: Connector = {
  source: "grok",
  version: 1,
  roots: grokRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [
    { folder: root, depth: 4, files: /\/(updates\.jsonl|chat_history\.jsonl|summary\.json|meta\.json)$/ },
  ],
  read: readLines(stripLine),
  parse: parseGrok,
  // There is no `identify`: the lines of the model's input have no ids, so records are compared by content.
}

/**
 * The possible logs of a session, the better one first. Sessions of older versions have only the second one, with the model's
 * input.
 */
const LOGS = ["updates.jsonl", "chat_history.jsonl"]
const MAX_FACTS_BYTES = 4 << 20

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  const subagentMeta = new Map<string, RawRecord>()
  const sessions: { unit: Unit; id: string; summary: RawRecord | undefined }[] = []
  for (const project of subfolders(root, report))
    for (const id of subfolders(join(root, project), report)) {
      const folder = join(root, project, id)
      for (const child of subfolders(join(folder, "subagents"), report))
        subagentMeta.set(child, objectAt(join(folder, "subagents", child, "meta.json"), MAX_FACTS_BYTES, report) ?? {})
      const unit = logIn(folder, id, report)
      if (unit) sessions.push({ unit, id, summary: objectAt(join(folder, "summary.json"), MAX_FACTS_BYTES, report) })
    }
  for (const { unit, id, summary } of sessions) yield unitWithFacts(unit, factsOf(summary ?? {}, subagentMeta.get(id)))
}

function logIn(folder: string, id: string, report: Report): Unit | undefined {
  for (const name of LOGS) {
    const unit = unitAt(join(folder, name), id, report)
    if (unit) return unit
  }
  return undefined
}

/**
 * Keeps only facts that rarely change, because the log is read again whenever one of them changes, and Grok rewrites the
 * summary at every turn.
 */
function factsOf(summary: RawRecord, subagentMeta: RawRecord | undefined): RawRecord {
  const facts = {
    cwd: string(record(summary.info)?.cwd),
    title: string(summary.generated_title) ?? string(summary.session_summary),
    kind: string(summary.session_kind),
    branch: string(summary.head_branch),
    commit: string(summary.head_commit),
    remote: Array.isArray(summary.git_remotes) ? string(summary.git_remotes[0]) : undefined,
    parent: string(subagentMeta?.parent_session_id),
    description: string(subagentMeta?.description),
  }
  return {
    type: "dex-session",
    ...Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)),
  }
}

/** Removes redundant data: outputs in the form of lists of bytes, encrypted thoughts, and Grok's own instructions. */
function stripLine(line: RawRecord): RawRecord {
  const params = record(line.params)
  const update = record(params?.update)
  if (!params || !update) return stripInputLine(line)
  const { eventId, streamStartMs, agentTimestampMs } = record(params._meta) ?? {}
  const raw = record(update.rawOutput)
  const isFinal = update.sessionUpdate !== "tool_call_update" || string(update.status) !== undefined
  const storedUpdate = isFinal ? update : { sessionUpdate: update.sessionUpdate, toolCallId: update.toolCallId }
  return cutLongTexts({
    method: line.method,
    timestamp: line.timestamp,
    params: {
      sessionId: params.sessionId,
      update: raw ? { ...storedUpdate, rawOutput: stripOutput(raw) } : storedUpdate,
      _meta: { eventId, streamStartMs, agentTimestampMs },
    },
  })
}

function stripOutput({ output, EditsApplied, ...raw }: RawRecord): RawRecord {
  const text = string(output) ?? string(record(EditsApplied)?.tool_output_for_prompt)
  return text === undefined ? raw : { ...raw, output: text }
}

function stripInputLine(line: RawRecord): RawRecord {
  const { encrypted_content: _, ...rest } = line
  if (line.type === "system") return { type: "system" }
  if (!Array.isArray(rest.content)) return cutLongTexts(rest)
  const content = records(rest.content).map((part) => {
    const image = typeof part.url === "string" ? digestOfDataUri(part.url) : undefined
    return image ? { type: "image", image } : part
  })
  return cutLongTexts({ ...rest, content })
}
