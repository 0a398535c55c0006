import { hash } from "node:crypto"
import { join } from "node:path"
import type { Message } from "../core/conversation.ts"
import { messageOf } from "../core/error.ts"
import { formatOf, type ParsedDocument, parseDocument } from "../documents/document.ts"
import { type DocumentFile, listDocuments, readDocument } from "../documents/files.ts"
import type { Collection, Store, UnitWrite } from "../store/store.ts"
import { redactRecord } from "./redact.ts"
import { redactName } from "./redact-name.ts"
import { REDACTION_VERSION } from "./redact-version.ts"

/** Another way to cut documents: all are read again. */
const DOCUMENTS_VERSION = 1

export type CollectionReport = {
  name: string
  documents: number
  /** New or different since last time. */
  changed: number
  removed: number
  skipped: { path: string; reason: string }[]
  complete: boolean
}

export type DocumentOptions = {
  signal?: AbortSignal
  onProgress?: (done: number, total: number) => void
}

/** Brings a collection's documents into the history: only those whose content is different, and without those gone. */
export async function syncCollection(
  store: Store,
  collection: Collection,
  { signal, onProgress }: DocumentOptions = {},
): Promise<CollectionReport> {
  const listed = await listDocuments(collection.root, signal ? { signal } : {}).catch((error: unknown) =>
    messageOf(error),
  )
  if (typeof listed === "string") return notThere(store, collection, listed)
  const files = listed.files.filter(({ path }) => collection.only === undefined || path === collection.only)
  const skipped = collection.only === undefined ? [...listed.skipped] : []
  const known = await store.knownUnits("docs")
  const report: CollectionReport = {
    name: collection.name,
    documents: files.length,
    changed: 0,
    removed: 0,
    skipped,
    complete: true,
  }
  const present = new Set<string>()
  for (const [i, file] of files.entries()) {
    const key = `${collection.name}/${file.path}`
    present.add(key)
    if (signal?.aborted) {
      report.complete = false
      continue
    }
    const before = known.get(key)
    const isCurrent = before?.connector_version === DOCUMENTS_VERSION && before.redaction_version === REDACTION_VERSION
    if (isCurrent && before.stamp.startsWith(`${stampOf(file)} `)) continue
    try {
      const text = await readDocument(collection.root, file.path)
      const stamp = `${stampOf(file)} ${hash("sha1", text, "hex")}`
      if (isCurrent && before.stamp.split(" ")[1] === stamp.split(" ")[1]) continue
      const { changed } = await store.writeUnit(await writeOf(collection, file, text, stamp))
      report.changed += changed
    } catch (error) {
      skipped.push({ path: keptName(file.path), reason: messageOf(error) })
    }
    onProgress?.(i + 1, files.length)
  }
  const prefix = `${collection.name}/`
  const gone = [...known.keys()].filter((key) => key.startsWith(prefix) && !present.has(key))
  report.removed = await store.removeDocuments(gone)
  return report
}

/** A folder that cannot be read now may come back: nothing is taken out. */
async function notThere(store: Store, { name, root }: Collection, reason: string): Promise<CollectionReport> {
  const { documents } = await store.documentsIn(name)
  return { name, documents, changed: 0, removed: 0, skipped: [{ path: root, reason }], complete: false }
}

function stampOf({ size, modified_at }: DocumentFile): string {
  return `${size}-${Math.round(modified_at)}`
}

async function writeOf(collection: Collection, file: DocumentFile, text: string, stamp: string): Promise<UnitWrite> {
  // Cut before it is redacted: a secret of several lines becomes one, and the lines must be the file's.
  const raw = await parseDocument(text, formatOf(file.path) ?? "text")
  const { record, redactions } = redactRecord({ title: raw.title, sections: raw.sections })
  const parsed = { ...raw, ...(record as Pick<ParsedDocument, "title" | "sections">) }
  const key = `${collection.name}/${file.path}`
  const name = keptName(file.path)
  const id = `${collection.name}/${name}`
  const at = Math.round(file.modified_at)
  const messages = messagesOf(id, parsed, collection)
  return {
    source: "docs",
    unit: { key, path: join(collection.root, file.path), stamp, bornAt: at, modifiedAt: at },
    seen: true,
    cursor: "",
    connector_version: DOCUMENTS_VERSION,
    redaction_version: REDACTION_VERSION,
    // The file itself is there to be read again.
    raw: { mode: "replace", live: [], left: [] },
    conversations:
      messages.length === 0
        ? []
        : [
            {
              id,
              kind: "document",
              title: { text: parsed.title || name, from: "person" },
              cwds: [],
              started_at: at,
              ended_at: at,
              authority: 0,
              messages,
              ...(collection.project !== undefined && { project: collection.project }),
            },
          ],
    tellsAll: true,
    dropsUntold: true,
    skipped: parsed.problems.map((reason) => ({ reason, where: name })),
    unknown: {},
    redactions,
  }
}

/** Two documents whose names differ by a secret only are still two. */
function keptName(path: string): string {
  const name = redactName(path)
  return name === path ? path : `${name}~${hash("sha256", path, "hex").slice(0, 8)}`
}

function messagesOf(id: string, { sections }: ParsedDocument, { kind }: Collection): Message[] {
  const headings = sections.map((section) => section.headings.at(-1) ?? "")
  const times = Map.groupBy(headings, (heading) => heading.toLowerCase())
  const origin = kind === "git" || kind === "npm" ? ("web" as const) : ("document" as const)
  return sections
    .filter((section) => section.text.trim() !== "")
    .map((section) => {
      const heading = section.headings.at(-1) ?? ""
      const isUnique = heading !== "" && times.get(heading.toLowerCase())!.length === 1
      const { anchor, first_line, last_line } = section
      const name = isUnique ? heading : anchor
      return {
        key: `${id}§${anchor}`,
        role: "document",
        parts: [
          {
            type: "text",
            text: section.text,
            origin,
            section: { name, anchor, headings: section.headings, first_line, last_line },
          },
        ],
      }
    })
}
