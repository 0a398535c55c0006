import { createHash } from "node:crypto"
import { lstatSync, realpathSync } from "node:fs"
import { basename, join } from "node:path"
import { DOCUMENTS_KEY, PROJECT_FILE, readObject } from "../../config/load.ts"
import { agreedDocuments } from "../../config/projects.ts"
import { formatOf } from "../../documents/document.ts"
import { visibleText } from "../../render/visible.ts"
import type { Dex } from "../context.ts"

// A repository may name documents for everyone who works in it. Whoever wrote that list is a stranger: nothing in it is read before the
// person has seen it and agreed, and then only what is really inside the repository.

export type ListedDocuments = {
  /** The repository, without links in its path. */
  folder: string
  /** The checksum of the list. Consent to it is not consent to another one. */
  list: string
  agreed: boolean
  /** Folders and files in the repository, relative to it. */
  paths: string[]
  /** Packages and addresses. They are shown, and only added by a command that names them. */
  offered: string[]
  refused: { entry: string; reason: string }[]
}

const MAX_ENTRIES = 20
const MAX_ENTRY_CHARS = 200

/** The documents that the current repository names. Undefined if it names none. Reads nothing but the list, and never throws. */
export function listedDocuments(dex: Dex): ListedDocuments | undefined {
  const value = readObject(join(dex.place, PROJECT_FILE), [])[DOCUMENTS_KEY]
  const folder = realPathOf(dex.place)
  if (value === undefined || folder === undefined) return undefined
  const list = createHash("sha256").update(JSON.stringify(value)).digest("hex")
  const found: ListedDocuments = { folder, list, agreed: false, paths: [], offered: [], refused: [] }
  found.agreed = agreedDocuments(dex.home)[folder]?.list === list
  if (!Array.isArray(value) || value.length > MAX_ENTRIES) {
    found.refused.push({ entry: "", reason: `it must be a list of at most ${MAX_ENTRIES} paths` })
    return found
  }
  for (const entry of new Set<unknown>(value)) {
    const reason = reasonToRefuse(folder, entry)
    if (reason !== undefined)
      found.refused.push({ entry: visibleText(String(JSON.stringify(entry))).slice(0, MAX_ENTRY_CHARS), reason })
    else if (isAddress(entry as string)) found.offered.push(entry as string)
    else found.paths.push((entry as string).replace(/\/$/, ""))
  }
  return found
}

/** `npm:react`, `https://…` or `git@host:path`. A drive of Windows is none, and is refused as a path. */
function isAddress(entry: string): boolean {
  return /^[a-z][a-z0-9+.-]+:|^[\w.-]+@[\w.-]+:/i.test(entry)
}

function reasonToRefuse(folder: string, entry: unknown): string | undefined {
  if (typeof entry !== "string" || entry === "") return "it is not text"
  if (entry.length > MAX_ENTRY_CHARS) return "it is too long"
  // A person cannot agree to a name that cannot be seen, or that could be taken for an option or for two words of a command.
  if (visibleText(entry) !== entry || /[\s\\'"`$;&|<>*?]/.test(entry) || entry.startsWith("-"))
    return "it contains characters that a list may not contain"
  if (isAddress(entry)) return undefined
  const names = entry.replace(/\/$/, "").split("/")
  if (names.some((name) => name === "" || name === ".." || name.startsWith(".") || name === "node_modules"))
    return "it must be a path below the repository, without hidden folders"
  const path = join(folder, ...names)
  // A link may lead out of the repository, now or after the next pull.
  if (realPathOf(path) !== path) return "it does not exist, or a link leads to it"
  const stats = lstatSync(path)
  return stats.isDirectory() || (stats.isFile() && formatOf(path)) ? undefined : "it is not a folder or a document"
}

/** True if no link took the place of a collection's folder or file since the person agreed to it. */
export function isInPlace(root: string): boolean {
  return realPathOf(root) === root
}

/** `api-docs` for the folder `docs` of `~/code/api`: many repositories have a folder of that name. */
export function listedName(folder: string, path: string): string {
  return `${basename(folder)}-${basename(path).replace(/\.[^.]+$/, "")}`
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined // there is nothing at this path
  }
}
