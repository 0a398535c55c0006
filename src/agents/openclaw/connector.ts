import { join } from "node:path"
import { parseObject, type RawRecord, record, string } from "../../core/record.ts"
import type { Connector, Cursor, Reading, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { factsFirst, type UnitWithFacts, unitWithFacts } from "../kit/facts-first.ts"
import { entriesOf, fileAt, textAt } from "../kit/folder.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { unitOfFile } from "../kit/unit-of-file.ts"
import { piConnector, stripPiEntry } from "../pi/connector.ts"
import { type OpenclawFacts, parseOpenclaw } from "./parse.ts"
import { openclawRoots } from "./roots.ts"

/** OpenClaw: files of Pi's format, in a folder for each of its agents, with an index beside them. */
export const openclawConnector: Connector = {
  source: "openclaw",
  version: 1,
  roots: openclawRoots,
  discover,
  watched,
  read,
  parse: parseOpenclaw,
  identify: (entry) => (entry.type === "dex-session" ? "dex-session" : piConnector.identify?.(entry)),
}

/** A reset or a deletion renames a transcript; `.full.bak` is what it was before it was shortened. */
const TRANSCRIPT = /^(.+?)\.jsonl(?:\.(?:reset|deleted)\..+|\.full\.bak)?$/
/** Copies of a transcript, and a log of what was sent to the model. */
const COPY = /\.(?:checkpoint\.[^/]*|trajectory)$/
const MAX_INDEX_BYTES = 64 << 20

function watched(root: string): Watched[] {
  return [{ folder: root, depth: 2, files: /^[^/]+\/sessions\/(.*\.jsonl.*|sessions\.json)$/ }]
}

function* discover(root: string): Iterable<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => void problems.push(problem)
  for (const agent of entriesOf(root, report)) {
    if (!agent.isDirectory()) continue
    const folder = join(root, agent.name, "sessions")
    const facts = factsIn(join(folder, "sessions.json"), report)
    for (const [id, unit] of transcriptsIn(folder, agent.name, report)) yield unitWithFacts(unit, facts.get(id))
  }
  yield* problems
}

/** One unit for each session: of several files, the one that OpenClaw still writes, or else the last one. */
function transcriptsIn(folder: string, agent: string, report: (problem: Unreadable) => void): Map<string, Unit> {
  const found = new Map<string, Unit>()
  for (const { name } of entriesOf(folder, report)) {
    const id = TRANSCRIPT.exec(name)?.[1]
    if (id === undefined || COPY.test(id)) continue
    const path = join(folder, name)
    const stat = fileAt(path, report)
    if (!stat) continue
    const unit = unitOfFile(path, `${agent}/${id}`, stat)
    const other = found.get(id)
    if (!other || rank(unit) > rank(other)) found.set(id, unit)
  }
  return found
}

function rank({ path, modifiedAt }: Unit): number {
  return path.endsWith(".jsonl") ? Number.POSITIVE_INFINITY : modifiedAt
}

/** What the index says of each session, by its id. */
function factsIn(path: string, report: (problem: Unreadable) => void): Map<string, OpenclawFacts> {
  const index = parseObject(textAt(path, MAX_INDEX_BYTES, report) ?? "{}") ?? {}
  const idOf = (key: unknown) => string(record(index[String(key)])?.sessionId)
  return new Map(
    Object.entries(index).flatMap(([key, value]) => {
      const entry: RawRecord = record(value) ?? {}
      const [id, label, parent] = [string(entry.sessionId), string(entry.label), idOf(entry.spawnedBy)]
      if (id === undefined) return []
      return [[id, { type: "dex-session", key, label: label || undefined, parent: parent || undefined }] as const]
    }),
  )
}

function read(unit: UnitWithFacts, after?: Cursor): Reading {
  return factsFirst(readJsonl(unit.path, after, { strip: stripPiEntry }), unit, after)
}
