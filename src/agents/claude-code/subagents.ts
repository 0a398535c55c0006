import { basename, dirname, join } from "node:path"
import { messageOf } from "../../core/error.ts"
import type { RawRecord } from "../../core/record.ts"
import { parseObject, record, records, string } from "../../core/record.ts"
import { isAbsent } from "../../files/look-at.ts"
import { readBytes, readStart } from "../../files/read-file.ts"
import type { Skipped } from "../kit/connector.ts"

const MAX_META_BYTES = 64 << 10
const MAX_PARENT_BYTES = 256 << 20
const MAX_HEAD = 64 << 10

export function isSubagentFile(path: string): boolean {
  return basename(path).startsWith("agent-")
}

/**
 * What is known of a subagent outside its transcript, as a record: its `.meta.json`, and the parent's call that started
 * it, which older builds tell only in the parent's transcript. Undefined while neither is there.
 */
export function subagentRecord(path: string, skip: (skipped: Skipped) => void): RawRecord | undefined {
  const beside = path.replace(/\.jsonl$/, ".meta.json")
  const meta = contentOf(beside, MAX_META_BYTES, (why) => skip({ reason: `a .meta.json: ${why}`, where: beside }))
  const fields = meta && parseObject(meta.toString("utf8"))
  const toolUseId = string(fields?.toolUseId) ?? callInParent(path)
  if (!fields && toolUseId === undefined) return undefined
  const { agentType, description, spawnDepth } = fields ?? {}
  return { type: "dex-subagent", agentType, description, spawnDepth, toolUseId }
}

function callInParent(path: string): string | undefined {
  const parent = parentOf(path)
  const content = parent === undefined ? undefined : contentOf(parent, MAX_PARENT_BYTES)
  if (!content) return undefined
  const id = basename(path).replace(/^agent-|\.jsonl$/g, "")
  const needle = `"agentId":${JSON.stringify(id)}`
  for (let at = content.indexOf(needle); at !== -1; at = content.indexOf(needle, at)) {
    const from = content.lastIndexOf(10, at) + 1
    const end = content.indexOf(10, at)
    const to = end === -1 ? content.length : end
    const call = callIn(parseObject(content.toString("utf8", from, to)), id)
    if (call !== undefined) return call
    at = to
  }
  return undefined
}

function callIn(raw: RawRecord | undefined, id: string): string | undefined {
  if (record(raw?.data)?.agentId === id) return string(raw?.parentToolUseID)
  if (record(raw?.toolUseResult)?.agentId !== id) return undefined
  return records(record(raw?.message)?.content)
    .map((block) => string(block.tool_use_id))
    .find((call) => call !== undefined)
}

/** The session's transcript: beside its folder, or, for the older sibling files, named in their records. */
function parentOf(path: string): string | undefined {
  const steps = path.split(/[\\/]/)
  const below = steps.lastIndexOf("subagents")
  if (below > 0) return `${path.slice(0, steps.slice(0, below).join("/").length)}.jsonl`
  const head = startOf(path)
  const session = [...head.matchAll(/"sessionId": ?"([\w-]{1,100})"/g)].map((match) => match[1]!)
  const parent = session.find((id) => !id.startsWith("agent-"))
  return parent && join(dirname(path), `${parent}.jsonl`)
}

function startOf(path: string): string {
  try {
    return readStart(path, MAX_HEAD).toString("latin1")
  } catch {
    return "" // whoever reads the transcript itself says so
  }
}

/** Undefined where it is not there, or not readable: what it would have told stays unknown. */
function contentOf(path: string, maxBytes: number, skip = (_why: string) => {}): Buffer | undefined {
  try {
    return readBytes(path, maxBytes)
  } catch (error) {
    if (!isAbsent(error)) skip(messageOf(error))
    return undefined
  }
}
