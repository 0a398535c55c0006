import { join } from "node:path"
import { crc32 } from "node:zlib"
import type {
  Connector,
  Cursor,
  Reading,
  Skipped,
  Unit,
  Unreadable,
  Watched,
} from "../../../../src/agents/kit/connector.ts"
import {
  entriesOf,
  fileAt,
  objectAt,
  prependFacts,
  type Report,
  type UnitWithFacts,
  unitOfFile,
  unitWithFacts,
  withProblems,
} from "../../../../src/agents/kit/files.ts"
import { hunksBetween } from "../../../../src/agents/kit/hunks-between.ts"
import { isSettled } from "../../../../src/agents/kit/jsonl.ts"
import { cutLongTexts, digestOfDataUri } from "../../../../src/agents/kit/messages.ts"
import { withoutUndefined } from "../../../../src/core/defined.ts"
import { messageOf } from "../../../../src/core/error.ts"
import { readText } from "../../../../src/core/read-file.ts"
import {
  isDeeperThan,
  MAX_DEPTH,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
} from "../../../../src/core/record.ts"
import { openhandsRoots } from "../records.ts"
import { parseOpenhands } from "./parse.ts"

/**
 * Reads OpenHands' command line: a folder per conversation, with one file for its state and one for each event. The file of an
 * event never changes.
 */
export const openhandsConnector: Connector = {
  source: "openhands",
  version: 1,
  roots: openhandsRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root): Watched[] => [{ folder: root, depth: 2, files: /^[^/]+\/(base_state|events\/event-[^/]+)\.json$/ }],
  read,
  parse: parseOpenhands,
  identify: (event) => (event.type === "dex-session" ? "dex-session" : string(event.id)),
}

const STATE = "base_state.json"
const EVENT = /^event-\d+-.*\.json$/
const MAX_STATE_BYTES = 64 << 20
const MAX_EVENT_BYTES = 64 << 20
/** The assumed size of an event, in bytes. Checking the size of every event would take too long. */
const EVENT_BYTES = 4096

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  for (const entry of entriesOf(root, report)) {
    if (!entry.isDirectory()) continue
    const names = eventsIn(join(root, entry.name), report)
    const path = join(root, entry.name, STATE)
    const stat = fileAt(path, report)
    if (!stat || names.length === 0) continue
    const unit = unitOfFile(path, entry.name, stat)
    const bytes = names.length * EVENT_BYTES
    yield unitWithFacts({ ...unit, bytes, stamp: `${names.length}:${names.at(-1)}` }, factsAt(path, report))
  }
}

function eventsIn(folder: string, report: Report): string[] {
  return entriesOf(join(folder, "events"), report).flatMap(({ name }) => (EVENT.test(name) ? [name] : []))
}

/** Keeps only the fields listed here. The state also has the agent's settings, which contain keys. */
function factsAt(path: string, report: Report): RawRecord | undefined {
  const state = objectAt(path, MAX_STATE_BYTES, report)
  if (!state) return undefined
  const metrics = records(Object.values(record(record(state.stats)?.usage_to_metrics) ?? {}))
  return {
    type: "dex-session",
    id: state.id,
    working_dir: record(state.workspace)?.working_dir,
    model: record(record(state.agent)?.llm)?.model,
    usage: metrics.map(({ accumulated_cost, accumulated_token_usage }) => ({
      accumulated_cost,
      accumulated_token_usage,
    })),
  }
}

/** Reads events. The cursor counts them and has a checksum of the names of those that were read. */
function read(unit: UnitWithFacts, after?: Cursor): Reading {
  const folder = join(unit.path, "..")
  const names = eventsIn(folder, () => {})
  const isContinued = after !== undefined && after.offset <= names.length && after.crc === crcOf(names, after.offset)
  let offset = isContinued ? after.offset : 0
  let pending = false
  const skipped: Skipped[] = []
  function* events(): Generator<RawRecord> {
    for (const name of names.slice(offset)) {
      const path = join(folder, "events", name)
      const event = eventAt(path)
      if (typeof event === "string") {
        pending = !isSettled(fileAt(path, () => {})?.mtimeMs ?? 0, Date.now())
        if (pending) return // the agent may still be writing it
        skipped.push({ reason: event, where: path })
      } else yield event
      offset++
    }
  }
  const end = () => ({ cursor: { offset, crc: crcOf(names, offset) }, skipped, pending })
  return prependFacts({ mode: isContinued || !after ? "append" : "replace", records: events(), end }, unit, after)
}

function crcOf(names: string[], count: number): number {
  return crc32(names.slice(0, count).join("\n"))
}

/** Returns the event, or the reason why it could not be read. */
function eventAt(path: string): RawRecord | string {
  try {
    const event = parseObject(readText(path, MAX_EVENT_BYTES))
    if (!event) return "not a complete JSON object"
    return isDeeperThan(event, MAX_DEPTH) ? `nested deeper than ${MAX_DEPTH} levels` : stripOpenhandsEvent(event)
  } catch (error) {
    return messageOf(error)
  }
}

/**
 * Removes tool descriptions, image bytes, and data that only a provider can read. Replaces the old and the new version of a
 * file with their difference.
 */
export function stripOpenhandsEvent(event: RawRecord): RawRecord {
  const { tools: _, reasoning_details: __, responses_reasoning_item: ___, critic_result: ____, ...rest } = event
  const observation = record(rest.observation)
  const message = record(rest.llm_message)
  return cutLongTexts({
    ...rest,
    ...withoutUndefined({
      observation: observation && stripObservation(observation),
      llm_message: message && { ...message, content: contentOf(message.content) },
    }),
    ...withoutUndefined({
      thinking_blocks: Array.isArray(rest.thinking_blocks)
        ? records(rest.thinking_blocks).map(stripThinking)
        : undefined,
    }),
  })
}

function stripObservation({ old_content, new_content, hunks: _, ...observation }: RawRecord): RawRecord {
  const path = string(observation.path)
  const [before, after] = [string(old_content) ?? "", string(new_content)]
  const isChange = path !== undefined && after !== undefined && observation.command !== "view"
  return {
    ...observation,
    content: contentOf(observation.content),
    ...withoutUndefined({ hunks: isChange ? hunksBetween(path, before, after) : undefined }),
  }
}

function contentOf(content: unknown): unknown {
  return Array.isArray(content) ? records(content).flatMap(withoutImageBytes) : content
}

function withoutImageBytes(piece: RawRecord): RawRecord[] {
  if (!Array.isArray(piece.image_urls)) return [piece]
  return piece.image_urls.flatMap((url) => {
    const image = digestOfDataUri(string(url) ?? "")
    return image ? [{ type: "image", image }] : []
  })
}

function stripThinking({ signature: _, data: __, ...block }: RawRecord): RawRecord {
  return block
}
