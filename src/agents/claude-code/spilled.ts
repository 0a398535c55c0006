import { closeSync, lstatSync, readSync } from "node:fs"
import { dirname, join } from "node:path"
import { messageOf } from "../../core/error.ts"
import type { RawRecord } from "../../core/record.ts"
import { array, isRecord, record, string } from "../../core/record.ts"
import { isAbsent } from "../../files/look-at.ts"
import { openFile } from "../../files/read-file.ts"
import type { Skipped } from "../kit/connector.ts"
import { isSubagentFile } from "./subagents.ts"
import { contentText } from "./text.ts"

// Outputs too big for the transcript stand in files beside it. They are kept as records of their own, so that parsing
// needs no files.

const MAX_BYTES = 1_000_000
const PREVIEW = "<persisted-output>"

/** The outputs that a record points to, read from the session's own folder and from nowhere else. */
export function spilledOutputs(raw: RawRecord, transcript: string, skip: (skipped: Skipped) => void): RawRecord[] {
  if (raw.type !== "user" && raw.type !== "progress") return []
  const carried = raw.type === "user" ? raw : record(record(raw.data)?.message)
  const blocks = array(record(carried?.message)?.content)
  const spilled: RawRecord[] = []
  for (const block of blocks) {
    if (!isRecord(block) || block.type !== "tool_result") continue
    const text = contentText(block.content)
    const told = blocks.length === 1 ? string(record(carried?.toolUseResult)?.persistedOutputPath) : undefined
    const path = told ?? (text.startsWith(PREVIEW) ? pathIn(text) : undefined)
    const id = string(block.tool_use_id)
    if (path === undefined || id === undefined) continue
    const output = readOutput(folderOf(transcript), path.split(/[\\/]/).at(-1)!, skip)
    if (output) spilled.push({ type: "dex-spilled", tool_use_id: id, ...output })
  }
  return spilled
}

function pathIn(preview: string): string | undefined {
  return /saved to:? ?([^\n]{1,4096})/.exec(preview.slice(0, 8192))?.[1]?.trim()
}

function folderOf(transcript: string): string {
  const below = isSubagentFile(transcript) ? transcript.lastIndexOf("subagents") : -1
  const session = below === -1 ? transcript.replace(/\.jsonl$/, "") : dirname(transcript.slice(0, below + 1))
  return join(session, "tool-results")
}

/** The path in a record is not trusted: only its last step is used, links are not followed. */
function readOutput(
  folder: string,
  name: string,
  skip: (skipped: Skipped) => void,
): { name: string; bytes: number; content: string } | undefined {
  if (name === "" || name === "." || name === "..") return undefined
  try {
    if (!lstatSync(folder).isDirectory()) return undefined
    const { fd, stat } = openFile(join(folder, name), { follow: false })
    try {
      const buffer = Buffer.alloc(Math.min(stat.size, MAX_BYTES))
      const got = readSync(fd, buffer, 0, buffer.length, 0)
      if (buffer.subarray(0, got).includes(0)) return undefined // not a text
      const content = buffer.toString("utf8", 0, got)
      const left = stat.size - got
      return { name, bytes: stat.size, content: left > 0 ? `${content}\n[dex: ${left} bytes not kept]` : content }
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (!isAbsent(error)) skip({ reason: `a saved output: ${messageOf(error)}`, where: join(folder, name) })
    return undefined // the preview stays
  }
}
