import { join } from "node:path"
import { number, parseObject, type RawRecord, string } from "../../core/record.ts"
import type { Connector, Cursor, Reading, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { factsFirst, type UnitWithFacts, unitWithFacts } from "../kit/facts-first.ts"
import { entriesOf, fileAt, textAt } from "../kit/folder.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { withoutBulk } from "../kit/kept-text.ts"
import { unitOfFile } from "../kit/unit-of-file.ts"
import { parseAntigravity } from "./parse.ts"
import { antigravityRoots } from "./roots.ts"

/**
 * Antigravity's transcripts, which it writes beside its own databases of protobuf and encrypted files. `transcript_full` has
 * the texts whole; of `transcript` they are cut.
 */
export const antigravityConnector: Connector = {
  source: "antigravity",
  version: 1,
  roots: antigravityRoots,
  discover,
  watched,
  read,
  parse: parseAntigravity,
  identify,
}

const LOGS = join(".system_generated", "logs")
const TRANSCRIPTS = ["transcript_full.jsonl", "transcript.jsonl"]
const MAX_INDEX_BYTES = 16 << 20

function watched(root: string): Watched[] {
  return [
    { folder: join(root, "brain"), depth: 3, files: /\/logs\/transcript(_full)?\.jsonl$/ },
    { folder: join(root, "cache"), depth: 0, files: /^last_conversations\.json$/ },
  ]
}

function* discover(root: string): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => void problems.push(problem)
  const folders = foldersIn(join(root, "cache", "last_conversations.json"), report)
  for (const entry of entriesOf(join(root, "brain"), report)) {
    if (!entry.isDirectory()) continue
    const unit = transcriptOf(join(root, "brain", entry.name), entry.name, report)
    const cwd = folders.get(entry.name)
    if (unit) yield unitWithFacts(unit, cwd === undefined ? undefined : { type: "dex-session", cwd })
  }
  yield* problems
}

function transcriptOf(folder: string, id: string, report: (problem: Unreadable) => void): Unit | undefined {
  for (const name of TRANSCRIPTS) {
    const path = join(folder, LOGS, name)
    const stat = fileAt(path, report)
    if (stat) return unitOfFile(path, id, stat)
  }
  return undefined
}

/** The last conversation of each folder: of older ones no file says where they were held. */
function foldersIn(path: string, report: (problem: Unreadable) => void): Map<string, string> {
  const index = parseObject(textAt(path, MAX_INDEX_BYTES, report) ?? "") ?? {}
  return new Map(Object.entries(index).flatMap(([folder, id]) => (string(id) ? [[string(id)!, folder]] : [])))
}

function read(unit: UnitWithFacts, after?: Cursor): Reading {
  return factsFirst(readJsonl(unit.path, after, { strip: (step) => withoutBulk(step) }), unit, after)
}

function identify(step: RawRecord): string | undefined {
  if (step.type === "dex-session") return "dex-session"
  const place = number(step.step_index)
  return place === undefined ? undefined : `${place} ${step.type} ${step.created_at}`
}
