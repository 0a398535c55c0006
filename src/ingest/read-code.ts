import { createHash } from "node:crypto"
import { realpathSync } from "node:fs"
import { dirname, join, sep } from "node:path"
import { CODE_VERSION, languageOf, MAX_CODE_BYTES, whyNotCode } from "../code/languages.ts"
import type { CodeParser } from "../code/parse.ts"
import { bindUses } from "../code/resolve.ts"
import type { FileFacts } from "../core/code.ts"
import { lookAt } from "../core/look-at.ts"
import { readBytes } from "../core/read-file.ts"
import { redactName, redactText } from "../redact/redact.ts"
import type { CodeFile, CodeStamp } from "../store/knowledge/code.ts"

/** A request to read a file that may have changed since `known`. */
export type CodeRequest = { path: string; known?: CodeStamp }
/** `same`: the file has a new time but the same content. Imports are not linked yet. Paths are redacted. */
export type ReadCode = { type: "read"; file: CodeFile } | { type: "same"; path: string; stamp: CodeStamp }

/** Returns the facts about a file of the project, redacted. Never throws because of a file's content. */
export async function readCode(
  project: string,
  { path, known }: CodeRequest,
  parser: () => Promise<CodeParser>,
): Promise<ReadCode> {
  const stamp = codeStampOf(project, path)
  const language = languageOf(path)!
  const name = redactName(path)
  const skip = (skipped: string, hash?: Buffer): ReadCode => ({
    type: "read",
    file: { ...NO_FACTS, ...(stamp ?? NO_STAMP), path: name, language, skipped, hash },
  })
  if (!stamp || !isInside(project, path)) return skip("unreadable")
  if (stamp.size > MAX_CODE_BYTES) return skip("huge")
  const content = readSmallFile(join(project, path))
  // Check again, because a folder in the path may have been replaced by a link meanwhile.
  if (!content || !isInside(project, path)) return skip("unreadable")
  const hash = createHash("sha256").update(content).digest().subarray(0, 16)
  if (known?.hash && known.version === CODE_VERSION && Buffer.from(known.hash).equals(hash))
    return { type: "same", path: name, stamp }
  const text = content.toString("utf8")
  const skipReason = whyNotCode(text)
  if (skipReason) return skip(skipReason, hash)
  const facts = await (await parser()).parse(language, text)
  if (!facts) return skip("slow", hash)
  return {
    type: "read",
    file: { ...stamp, hash, path: name, language, lines: countLines(text), ...redactFacts(facts) },
  }
}

const NO_FACTS = { lines: 0, definitions: [], imports: [], uses: [] }
const NO_STAMP = { size: 0, modified_at: 0, version: CODE_VERSION }

/** Returns undefined if the path is not a regular file. */
export function codeStampOf(project: string, path: string): CodeStamp | undefined {
  const stat = lookAt(join(project, path), { follow: false })
  if (stat === undefined || stat === "unknown" || !stat.isFile()) return undefined
  return { size: stat.size, modified_at: Math.trunc(stat.mtimeMs), version: CODE_VERSION }
}

export const isSameStamp = (a: CodeStamp, b: CodeStamp): boolean =>
  a.size === b.size && a.modified_at === b.modified_at && a.version === b.version

/** Returns the content of a regular file, or undefined if the file cannot be read or is too large for code. */
export function readSmallFile(file: string): Buffer | undefined {
  try {
    return readBytes(file, MAX_CODE_BYTES, { follow: false })
  } catch {
    return undefined
  }
}

/** True if no folder in the path is a link that leads out of the project. */
function isInside(project: string, path: string): boolean {
  try {
    const root = realpathSync(project)
    const folder = realpathSync(dirname(join(project, path)))
    return folder === root || folder.startsWith(root + sep)
  } catch {
    return false // the file was deleted after it was listed
  }
}

/** Redacts the facts, because comments, URLs and names may contain secrets. */
function redactFacts(facts: FileFacts) {
  return {
    definitions: facts.definitions.map((item) => ({
      ...item,
      name: redactName(item.name),
      container: item.container && redactName(item.container),
      doc: item.doc && redactText(item.doc),
      deprecated: item.deprecated && redactText(item.deprecated),
    })),
    imports: facts.imports.map((item) => ({
      ...item,
      module: redactName(item.module),
      name: redactName(item.name),
      as: redactName(item.as),
    })),
    uses: bindUses(facts).map((item) => ({
      ...item,
      name: redactName(item.name),
      receiver: item.receiver && redactName(item.receiver),
      container: item.container && redactName(item.container),
    })),
  }
}

function countLines(text: string): number {
  let lines = text.endsWith("\n") || text === "" ? 0 : 1
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) lines++
  return lines
}
