import { basename, join, sep } from "node:path"
import type { RawRecord } from "../../core/record.ts"
import type { Connector, Cursor, Reading, Skipped, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { entriesOf, fileAt } from "../kit/folder.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { unitOfFile } from "../kit/unit-of-file.ts"
import { parseTranscript } from "./parse.ts"
import { parseHistory, promptOwner, stripPrompt } from "./prompt-log.ts"
import { COWORK, claudeCodeRoots } from "./roots.ts"
import { spilledOutputs } from "./spilled.ts"
import { parseLine, strip, wanted } from "./strip.ts"
import { isSubagentFile, subagentRecord } from "./subagents.ts"

export const claudeCodeConnector: Connector = {
  source: "claude_code",
  version: 5,
  roots: claudeCodeRoots,
  discover,
  watched,
  read,
  parse: (records, unit) => (isHistory(unit.key) ? parseHistory(records) : parseTranscript(records, unit)),
  conversationOf: (key) => (isHistory(key) ? promptOwner : undefined),
  // No `identify`: of two records with one uuid either may be the damaged one, so each counts as its content.
}

const COWORK_DEPTH = 5

function* discover(root: string): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => problems.push(problem)
  if (basename(root) === COWORK) yield* discoverCowork(root, COWORK_DEPTH, report)
  else {
    yield* discoverProjects(join(root, "projects"), report)
    const log = unitAt(join(root, "history.jsonl"), `${basename(root)}/history.jsonl`, report)
    if (log) yield log
  }
  yield* problems
}

function watched(root: string): Watched[] {
  if (basename(root) === COWORK) return [{ folder: root, depth: Infinity, files: /(^|\/)\.claude\/projects\// }]
  return [
    { folder: join(root, "projects"), depth: Infinity, files: /\.jsonl$/ },
    { folder: root, depth: 0, files: /^history\.jsonl$/ },
  ]
}

type Report = (problem: Unreadable) => void

function* discoverCowork(dir: string, levels: number, report: Report): Generator<Unit> {
  for (const entry of entriesOf(dir, report)) {
    if (!entry.isDirectory()) continue
    const path = join(dir, entry.name)
    if (entry.name === ".claude") yield* discoverProjects(join(path, "projects"), report)
    else if (levels > 1) yield* discoverCowork(path, levels - 1, report)
  }
}

function* discoverProjects(projects: string, report: Report): Generator<Unit> {
  for (const project of entriesOf(projects, report)) {
    if (!project.isDirectory()) continue
    const dir = join(projects, project.name)
    for (const entry of entriesOf(dir, report)) {
      // Not `join`: for ten thousand transcripts it takes as long as asking for their sizes.
      const path = dir + sep + entry.name
      if (entry.isDirectory())
        yield* discoverSubagents(join(path, "subagents"), `${project.name}/${entry.name}`, report)
      else if (entry.name.endsWith(".jsonl")) yield* transcriptAt(path, `${project.name}/${entry.name}`, report)
    }
  }
}

/** Workflows nest their agents deeper; their `journal.jsonl` is no transcript. */
function* discoverSubagents(dir: string, session: string, report: Report, below = "subagents"): Generator<Unit> {
  for (const entry of entriesOf(dir, report)) {
    const path = join(dir, entry.name)
    const key = `${session}/${below}/${entry.name}`
    if (entry.isDirectory()) yield* discoverSubagents(path, session, report, `${below}/${entry.name}`)
    else if (isSubagentFile(path) && path.endsWith(".jsonl")) yield* transcriptAt(path, key, report)
  }
}

function* transcriptAt(path: string, key: string, report: Report): Generator<Unit> {
  const unit = unitAt(path, key, report)
  if (unit) yield unit
}

function unitAt(path: string, key: string, report: Report): Unit | undefined {
  const file = fileAt(path, report)
  return file && unitOfFile(path, key, file)
}

function isHistory(key: string): boolean {
  return key.endsWith("/history.jsonl")
}

function read(unit: Unit, after?: Cursor): Reading {
  if (isHistory(unit.key)) return readJsonl(unit.path, after, { strip: stripPrompt })
  const reading = readJsonl(unit.path, after, { strip, wanted, parse: parseLine })
  const isChild = isSubagentFile(unit.path)
  let linked = reading.mode === "append" && after?.linked === true
  const isFirst = after === undefined || reading.mode === "replace"
  const beside: Skipped[] = []

  function* withSidecars(): Generator<RawRecord> {
    // Asked again at every reading until it tells; that it cannot be read is said once.
    const told = isChild && !linked ? subagentRecord(unit.path, (one) => isFirst && beside.push(one)) : undefined
    linked ||= told?.toolUseId !== undefined
    if (told && (isFirst || linked)) yield told
    for (const record of reading.records) {
      yield record
      yield* spilledOutputs(record, unit.path, (one) => beside.push(one))
    }
  }

  return {
    mode: reading.mode,
    records: withSidecars(),
    end: () => {
      const { cursor, skipped, pending } = reading.end()
      return { cursor: isChild ? { ...cursor, linked } : cursor, skipped: [...skipped, ...beside], pending }
    },
  }
}
