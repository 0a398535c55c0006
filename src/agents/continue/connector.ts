import { join } from "node:path"
import { isRecord, parseArray, type RawRecord, record, records, string } from "../../core/record.ts"
import type { Connector, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { factsFirst, type UnitWithFacts, unitWithFacts } from "../kit/facts-first.ts"
import { entriesOf, fileAt, textAt } from "../kit/folder.ts"
import { readJsonFile } from "../kit/json-file.ts"
import { digestOfDataUri, withoutBulk } from "../kit/kept-text.ts"
import { unitOfFile } from "../kit/unit-of-file.ts"
import { parseContinue } from "./parse.ts"
import { continueRoots } from "./roots.ts"

/** Continue: a JSON file for each session, rewritten whole, and a list of them that says when each began. */
export const continueConnector: Connector = {
  source: "continue",
  version: 1,
  roots: continueRoots,
  discover,
  watched,
  read: (unit: UnitWithFacts, after) => factsFirst(readJsonFile(unit.path, after, recordsIn), unit, after),
  parse: parseContinue,
  // No `identify`: what was said has no name of its own, so it counts as its content and place.
}

const LIST = "sessions.json"
const MAX_LIST_BYTES = 64 << 20

function watched(root: string): Watched[] {
  return [{ folder: root, depth: 0, files: /\.json$/ }]
}

function* discover(root: string): Iterable<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => void problems.push(problem)
  const listed = records(parseArray(textAt(join(root, LIST), MAX_LIST_BYTES, report) ?? "[]"))
  const begun = new Map(listed.map(({ sessionId, dateCreated }) => [sessionId, dateCreated]))
  for (const { name } of entriesOf(root, report)) {
    const id = /^(.+)\.json$/.exec(name)?.[1]
    if (id === undefined || name === LIST) continue
    const stat = fileAt(join(root, name), report)
    const created = begun.get(id)
    const facts = created === undefined ? undefined : { type: "dex-session", created }
    if (stat) yield unitWithFacts(unitOfFile(join(root, name), id, stat), facts)
  }
  yield* problems
}

/** The session, and then each of its turns. */
function* recordsIn(whole: RawRecord): Iterable<RawRecord> {
  const { history, ...session } = whole
  yield withoutBulk({ type: "session", ...session })
  for (const [place, turn] of records(history).entries()) yield withoutBulk({ type: "turn", place, ...stripTurn(turn) })
}

/** Without what the editor keeps for itself, the logs of requests, and image bytes. */
function stripTurn({ editorState: _, promptLogs: __, ...turn }: RawRecord): RawRecord {
  const message = record(turn.message)
  if (!message || !Array.isArray(message.content)) return turn
  const content = message.content.map((part: unknown) => {
    const address = isRecord(part) ? string(record(part.imageUrl)?.url) : undefined
    const image = address === undefined ? undefined : digestOfDataUri(address)
    return image ? { type: "image", image } : part
  })
  return { ...turn, message: { ...message, content } }
}
