import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { basename, dirname } from "node:path"
import type { RawRecord } from "../../core/record.ts"
import { readText } from "../../files/read-file.ts"
import type { Connector, Cursor, Reading, Unit, Unreadable } from "../kit/connector.ts"
import { readingOfRows } from "../kit/database-units.ts"
import { fileAt } from "../kit/folder.ts"
import { withoutBulk } from "../kit/kept-text.ts"
import { unitOfFile } from "../kit/unit-of-file.ts"
import { parseAider } from "./parse.ts"
import { aiderRoots } from "./roots.ts"

/** Aider: one Markdown file in the project, to which every run is appended. A run is a conversation. */
export const aiderConnector: Connector = {
  source: "aider",
  version: 1,
  roots: aiderRoots,
  discover,
  // The folder is a home or a project: nobody waits there for what may never come.
  watched: (root) => (existsSync(root) ? [{ folder: dirname(root), depth: 0, files: exactly(basename(root)) }] : []),
  read,
  parse: parseAider,
  identify: (raw) => `${raw.type} ${raw.id}`,
  conversationOf: () => (raw) => String(raw.id),
}

const MAX_BYTES = 256 << 20

function* discover(root: string): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const stat = fileAt(root, (problem) => problems.push(problem))
  if (stat) yield unitOfFile(root, root, stat)
  yield* problems
}

function exactly(name: string): RegExp {
  return new RegExp(`^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`)
}

const HEADER = /^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$/

/** A record for each run. It is named by its moment and its folder, wherever that has been moved to. Its time is this machine's, and is kept as the moment that it was here. */
function read(unit: Unit, after?: Cursor): Reading {
  const folder = createHash("sha256")
    .update(basename(dirname(unit.path)))
    .digest("hex")
    .slice(0, 8)
  const runs: { started_at: number; lines: string[] }[] = []
  for (const line of readText(unit.path, MAX_BYTES).split(/\r?\n/)) {
    const started = HEADER.exec(line)?.[1]
    if (started !== undefined) runs.push({ started_at: Date.parse(started.replace(" ", "T")), lines: [] })
    else runs.at(-1)?.lines.push(line)
  }
  const given = new Map<string, number>()
  const rows = runs.map(({ started_at, lines }): RawRecord => {
    const name = `${Number.isNaN(started_at) ? 0 : started_at}-${folder}`
    const times = (given.get(name) ?? 0) + 1
    given.set(name, times)
    return {
      type: "run",
      id: times === 1 ? name : `${name}-${times}`,
      started_at: !Number.isNaN(started_at) ? started_at : undefined,
      folder: dirname(unit.path),
      text: lines.join("\n"),
    }
  })
  return readingOfRows(rows, withoutBulk, [], after)
}
