import { dirname, join } from "node:path"
import { defined } from "../../core/defined.ts"
import { parseArray, type RawRecord, records, string } from "../../core/record.ts"
import {
  type Cursor,
  isUnreadable,
  type Parsed,
  type Reading,
  type Seen,
  type Unit,
  type UnitName,
  type Unreadable,
  type Watched,
} from "../kit/connector.ts"
import { factsFirst, type UnitWithFacts, unitWithFacts } from "../kit/facts-first.ts"
import { textAt } from "../kit/folder.ts"
import { rooCodeConnector } from "../roo-code/connector.ts"

// Tasks of Cline before version 3, which Roo Code took over with the rest of it. What Roo Code keeps in each task's folder,
// Cline keeps in one list of all tasks.

const MAX_LIST_BYTES = 64 << 20

/** A session's key has the name of its folder and of its file. */
export function isTask({ key }: UnitName): boolean {
  return !key.includes("/")
}

export function watchedTasks(root: string): Watched[] {
  const list = { folder: join(dirname(root), "state"), depth: 0, files: /^taskHistory\.json$/ }
  return [...rooCodeConnector.watched!(root), list]
}

export function* discoverTasks(root: string, seen: Seen): Iterable<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const list = textAt(join(dirname(root), "state", "taskHistory.json"), MAX_LIST_BYTES, (one) => problems.push(one))
  const tasks = new Map(records(parseArray(list ?? "[]")).map((task) => [task.id, task]))
  for (const unit of rooCodeConnector.discover(root, seen)) {
    const task = isUnreadable(unit) ? undefined : tasks.get(unit.key)
    yield task && !isUnreadable(unit) ? unitWithFacts(unit, lineOf(task)) : unit
  }
  yield* problems
}

function lineOf(task: RawRecord): RawRecord {
  const workspace = string(task.cwdOnTaskInitialization)
  return { file: "history", ...task, ...defined({ workspace }) }
}

export async function readTask(unit: UnitWithFacts, after?: Cursor): Promise<Reading> {
  return factsFirst(await rooCodeConnector.read(unit, after), unit, after)
}

export function parseTask(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  return rooCodeConnector.parse(raw, unit)
}

export function identifyInTask(one: RawRecord): string | undefined {
  return one.file === "history" ? "history" : rooCodeConnector.identify?.(one)
}
