import { createHash } from "node:crypto"
import { join } from "node:path"
import { messageOf } from "../../core/error.ts"
import { parseArray, parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import { readStart, readText } from "../../files/read-file.ts"
import type { Cursor, Reading, Skipped, Unit, Unreadable } from "../kit/connector.ts"
import { readingOfRows } from "../kit/database-units.ts"
import { entriesOf, fileAt, textAt } from "../kit/folder.ts"
import { hunksBetween } from "../kit/hunks-between.ts"
import { withoutBulk } from "../kit/kept-text.ts"
import { isSettled } from "../kit/settled.ts"
import { unitOfFile } from "../kit/unit-of-file.ts"

// The editor's sessions: `workspace-sessions/<folder>/<id>.json` says who spoke, and what the agent said and did is in logs
// of their own, `<hash of the folder>/<the same name everywhere>/…`, one for each execution.

const LOGS = "414d1636299d2b9e4ce7e17fb11f63e9"
const MAX_INDEX_BYTES = 16 << 20
const MAX_BYTES = 256 << 20
/** An execution's id is among the first fields of its log. */
const HEAD_BYTES = 1024

type EditorUnit = Unit & { created?: unknown }

export function* editorSessions(root: string, report: (problem: Unreadable) => void): Generator<Unit> {
  const sessions = join(root, "workspace-sessions")
  for (const workspace of entriesOf(sessions, report)) {
    if (!workspace.isDirectory()) continue
    const folder = join(sessions, workspace.name)
    const index = records(parseArray(textAt(join(folder, "sessions.json"), MAX_INDEX_BYTES, report) ?? ""))
    for (const { name } of entriesOf(folder, report)) {
      if (!name.endsWith(".json") || name === "sessions.json") continue
      const path = join(folder, name)
      const stat = fileAt(path, report)
      if (!stat) continue
      const id = name.slice(0, -5)
      const about = index.find(({ sessionId }) => sessionId === id)
      const logs = logCount(logFolder(root, string(about?.workspaceDirectory)))
      const unit: EditorUnit = { ...unitOfFile(path, `ide:${workspace.name}/${id}`, stat), created: about?.dateCreated }
      yield { ...unit, stamp: `${unit.stamp}:${logs}` }
    }
  }
}

/** How many logs there are: a new one may be this session's. */
function logCount(folder: string | undefined): number {
  return folder === undefined ? 0 : entriesOf(folder, () => {}).length
}

function logFolder(root: string, workspace: string | undefined): string | undefined {
  if (workspace === undefined) return undefined
  return join(root, createHash("sha256").update(workspace).digest("hex").slice(0, 32), LOGS)
}

export function readEditorSession(unit: EditorUnit, after?: Cursor): Reading {
  const whole = parseObject(readText(unit.path, MAX_BYTES))
  if (!whole) return notWhole(unit, after)
  const { sessionId, title, workspaceDirectory, history } = whole
  const skipped: Skipped[] = []
  const root = join(unit.path, "..", "..", "..")
  const logs = logsIn(logFolder(root, string(workspaceDirectory)))
  const about = { type: "dex-editor", sessionId, title, workspaceDirectory, created: unit.created }
  const rows = records(history).flatMap((entry, place) => {
    const { message, executionId } = entry
    const log = logs.get(string(executionId) ?? "")
    return [{ type: "history", place, message, executionId }, ...(log ? actionsIn(log, skipped) : [])]
  })
  return readingOfRows([about, ...rows], withoutBulk, skipped, after)
}

/** Somebody may still be writing it. */
function notWhole({ modifiedAt }: Unit, after?: Cursor): Reading {
  const settled = isSettled(modifiedAt, Date.now())
  const skipped = settled ? [{ reason: "not a whole JSON object", where: "whole file" }] : []
  return {
    mode: "append",
    records: [],
    end: () => ({ cursor: after ?? { offset: 0, crc: 0 }, skipped, pending: !settled }),
  }
}

/** The logs of a workspace, by the execution that each is of. */
function logsIn(folder: string | undefined): Map<string, string> {
  const logs = new Map<string, string>()
  if (folder === undefined) return logs
  for (const { name } of entriesOf(folder, () => {})) {
    const path = join(folder, name)
    if (!fileAt(path, () => {})) continue
    const id = /"executionId"\s*:\s*"([^"]{1,100})"/.exec(readStart(path, HEAD_BYTES).toString("utf8"))?.[1]
    if (id !== undefined) logs.set(id, path)
  }
  return logs
}

function actionsIn(path: string, skipped: Skipped[]): RawRecord[] {
  try {
    const log = parseObject(readText(path, MAX_BYTES))
    if (!log) throw new Error("not a whole JSON object")
    return records(log.actions).map(({ actionId, actionType, emittedAt, input, output }) => {
      const { originalContent, modifiedContent, ...asked } = record(input) ?? {}
      const [before, after] = [string(originalContent) ?? "", string(modifiedContent) ?? ""]
      const file = string(asked.file)
      const hunks = file === undefined ? [] : hunksBetween(file, before, after)
      return { type: "action", actionId, actionType, emittedAt, input: asked, output: record(output), hunks }
    })
  } catch (error) {
    skipped.push({ reason: messageOf(error), where: path })
    return []
  }
}
