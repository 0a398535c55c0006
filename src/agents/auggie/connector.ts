import { join } from "node:path"
import { type RawRecord, records } from "../../core/record.ts"
import type { Connector, Unit, Unreadable } from "../kit/connector.ts"
import { entriesOf, fileAt } from "../kit/folder.ts"
import { readJsonFile } from "../kit/json-file.ts"
import { withoutBulk } from "../kit/kept-text.ts"
import { unitOfFile } from "../kit/unit-of-file.ts"
import { parseAuggie } from "./parse.ts"
import { auggieRoots } from "./roots.ts"

const SESSION = /\.json$/
const MAX_FOLDERS = 4

export const auggieConnector: Connector = {
  source: "auggie",
  version: 1,
  roots: auggieRoots,
  discover,
  watched: (root) => [{ folder: root, depth: MAX_FOLDERS, files: SESSION }],
  read: (unit, after) => readJsonFile(unit.path, after, recordsOfWhole),
  parse: parseAuggie,
}

function* discover(root: string): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  yield* sessionsBelow(root, "", MAX_FOLDERS, (problem) => void problems.push(problem))
  yield* problems
}

function* sessionsBelow(
  root: string,
  below: string,
  depth: number,
  report: (problem: Unreadable) => void,
): Generator<Unit> {
  for (const entry of entriesOf(join(root, below), report)) {
    const name = below === "" ? entry.name : `${below}/${entry.name}`
    if (entry.isDirectory() && depth > 0) yield* sessionsBelow(root, name, depth - 1, report)
    else if (SESSION.test(name)) {
      const stat = fileAt(join(root, name), report)
      if (stat) yield unitOfFile(join(root, name), name, stat)
    }
  }
}

/** One for the session, and one for each exchange: so that an exchange more does not make all of them new. */
function* recordsOfWhole(whole: RawRecord): Generator<RawRecord> {
  const { chatHistory, ...session } = whole
  yield withoutBulk({ type: "dex-session", ...session })
  for (const message of records(chatHistory)) yield withoutBulk(message)
}
