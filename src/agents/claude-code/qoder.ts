import { join } from "node:path"
import { type RawRecord, string } from "../../core/record.ts"
import type { Connector, Unit, Unreadable } from "../kit/connector.ts"
import { entriesOf, fileAt } from "../kit/folder.ts"
import { unitOfFile } from "../kit/unit-of-file.ts"

/** The record that a session of Qoder begins with: where it was held. */
const META = "session_meta"

/** Qoder's editor keeps sessions without a folder for their project, and a session says first where it is. */
export function qoderDifferences(parent: Connector): Partial<Connector> {
  return {
    *discover(root, seen, scratch) {
      yield* parent.discover(root, seen, scratch)
      yield* withoutProject(join(root, "projects"))
    },
    parse: (raw, unit) => {
      const records = [...raw]
      const { conversations, unknown } = parent.parse(records, unit)
      const cwd = string(records.find(({ type }: RawRecord) => type === META)?.cwd)
      const { [META]: _, ...rest } = unknown
      return {
        conversations: conversations.map((one) => (one.cwds.length === 0 && cwd ? { ...one, cwds: [cwd] } : one)),
        unknown: rest,
      }
    },
  }
}

function* withoutProject(folder: string): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => void problems.push(problem)
  for (const entry of entriesOf(folder, report)) {
    if (entry.isDirectory() || !entry.name.endsWith(".jsonl")) continue
    const stat = fileAt(join(folder, entry.name), report)
    if (stat) yield unitOfFile(join(folder, entry.name), `cli/${entry.name}`, stat)
  }
  // A folder that cannot be read is reported by who looks for projects in it.
}
