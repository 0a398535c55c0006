import { join } from "node:path"
import { parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import type { Connector, Cursor, Reading, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { factsFirst, type UnitWithFacts, unitWithFacts } from "../kit/facts-first.ts"
import { entriesOf, fileAt, textAt } from "../kit/folder.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { digestOf, withoutBulk } from "../kit/kept-text.ts"
import { unitOfFile } from "../kit/unit-of-file.ts"
import { parseVibe } from "./parse.ts"
import { vibeRoots } from "./roots.ts"

/** Mistral Vibe: a folder for each session, with its messages and a file about it; its subagents' folders are within. */
export const mistralVibeConnector: Connector = {
  source: "mistral_vibe",
  version: 1,
  roots: vibeRoots,
  discover,
  watched,
  read,
  parse: parseVibe,
  identify,
}

const MAX_META_BYTES = 16 << 20
/** A subagent may start others. */
const MAX_NESTED = 3

function watched(root: string): Watched[] {
  return [{ folder: root, depth: 1 + 2 * MAX_NESTED, files: /\/(messages\.jsonl|meta\.json)$/ }]
}

function* discover(root: string): Iterable<Unit | Unreadable> {
  const problems: Unreadable[] = []
  yield* sessionsIn(root, "", MAX_NESTED, (problem) => void problems.push(problem))
  yield* problems
}

function* sessionsIn(
  folder: string,
  prefix: string,
  nested: number,
  report: (problem: Unreadable) => void,
): Generator<Unit> {
  for (const entry of entriesOf(folder, report)) {
    if (!entry.isDirectory()) continue
    const [session, key] = [join(folder, entry.name), `${prefix}${entry.name}`]
    const path = join(session, "messages.jsonl")
    const stat = fileAt(path, report)
    if (stat) yield unitWithFacts(unitOfFile(path, key, stat), factsAt(join(session, "meta.json"), report))
    if (nested > 0) yield* sessionsIn(join(session, "agents"), `${key}/agents/`, nested - 1, report)
  }
}

/** Named fields only: it also holds the settings, the system prompt and every tool's description. */
function factsAt(path: string, report: (problem: Unreadable) => void): RawRecord | undefined {
  const meta = parseObject(textAt(path, MAX_META_BYTES, report) ?? "")
  if (!meta) return undefined
  const { session_id, parent_session_id, start_time, end_time, git_commit, git_branch, title, title_source } = meta
  return {
    type: "dex-session",
    ...{ session_id, parent_session_id, start_time, end_time, git_commit, git_branch, title, title_source },
    cwd: string(record(meta.environment)?.working_directory) ?? meta.working_dir,
    model: string(meta.model) ?? record(meta.config)?.active_model,
    stats: meta.stats,
  }
}

function read(unit: UnitWithFacts, after?: Cursor): Reading {
  return factsFirst(readJsonl(unit.path, after, { strip: stripMessage }), unit, after)
}

function identify(entry: RawRecord): string | undefined {
  if (entry.type === "dex-session") return "dex-session"
  return string(entry.message_id) ?? string(entry.tool_call_id)
}

function stripMessage({ reasoning_signature: _, reasoning_state: __, ...message }: RawRecord): RawRecord {
  return withoutBulk(
    Array.isArray(message.images) ? { ...message, images: records(message.images).map(stripImage) } : message,
  )
}

/** Older versions have the fields of `source` in the image itself. */
function stripImage(image: RawRecord): RawRecord {
  const { data, ...source } = record(image.source) ?? image
  if (typeof data !== "string") return image
  return { alias: image.alias, ...source, image: digestOf(Buffer.from(data, "base64"), string(image.mime_type)) }
}
