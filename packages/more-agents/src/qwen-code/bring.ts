import { join } from "node:path"
import { type Bring, isPlainId, newestBelow, newestFile, transcriptPieces } from "../../../../src/agents/kit/bring.ts"
import { DexError } from "../../../../src/core/error.ts"
import { lookAt } from "../../../../src/core/look-at.ts"
import { parseObject } from "../../../../src/core/record.ts"
import { qwenCodeRoots } from "../records.ts"

/**
 * `qwen --resume` looks only in the folder named after the current one, and refuses a transcript whose first record names another
 * folder. So the copy's first record gets the new folder; the others stay as they are.
 */
export const qwenCodeBring: Bring = {
  plan: ({ id }, folder, machine) => {
    if (!isPlainId(id)) return undefined
    const normalFolder = machine.platform === "win32" ? folder.toLowerCase() : folder
    const [runtime] = qwenCodeRoots(machine)
    const root = join(runtime!, "projects")
    const path = join(normalFolder.replace(/[^a-zA-Z0-9]/g, "-"), "chats", `${id}.jsonl`)
    if (lookAt(join(root, path)) !== undefined) return undefined
    const source = newestFile(
      qwenCodeRoots(machine).flatMap((root) => newestBelow(join(root, "projects"), "chats", `${id}.jsonl`) ?? []),
    )
    if (source === undefined) return undefined
    return { type: "files", root, files: [{ path, content: () => transcriptIn(folder, source) }] }
  },
}

const MAX_RECORD_BYTES = 64 << 20

function* transcriptIn(folder: string, source: string): Generator<string | Buffer> {
  let start: Buffer | undefined = Buffer.alloc(0)
  for (const piece of transcriptPieces(source)) {
    if (start === undefined) {
      yield piece
      continue
    }
    start = Buffer.concat([start, piece])
    const end = start.indexOf(10)
    if (end === -1) {
      if (start.length > MAX_RECORD_BYTES)
        throw new DexError("unreadable", `The first record of ${source} is too large.`)
      continue
    }
    yield recordIn(folder, start.subarray(0, end), source)
    yield start.subarray(end)
    start = undefined
  }
  if (start !== undefined) yield recordIn(folder, start, source)
}

function recordIn(folder: string, line: Buffer, source: string): string {
  const record = parseObject(line.toString("utf8"))
  if (record === undefined) throw new DexError("unreadable", `The first record of ${source} is damaged.`)
  return JSON.stringify({ ...record, cwd: folder })
}
