import { hash } from "node:crypto"
import { join } from "node:path"
import type { Message } from "../core/conversation.ts"
import { formatOf, parseDocument } from "../documents/document.ts"
import { type DocumentFile, readDocument } from "../documents/files.ts"
import type { ParsedDocument } from "../documents/sections.ts"
import { redactName, redactRecord } from "../redact/redact.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import type { Collection, UnitWrite } from "../store/history/store.ts"

/** Increase this number when documents are split differently. dex then reads all documents again. */
export const DOCUMENTS_VERSION = 1

/**
 * A request to read a document that may have changed. `hash` is the hash of the stored content, if this version of dex read it.
 */
export type DocumentRequest = { collection: Collection; file: DocumentFile; hash?: string }
/** The sections to store, or undefined if the content is unchanged. */
export type ReadDocument = UnitWrite | undefined

/** Reads a document, splits it into sections and redacts them. Throws if it cannot be read. */
export async function readSections({ collection, file, hash: known }: DocumentRequest): Promise<ReadDocument> {
  const text = await readDocument(collection.root, file.path)
  const contentHash = hash("sha1", text, "hex")
  return contentHash === known ? undefined : writeOf(collection, file, text, `${documentStampOf(file)} ${contentHash}`)
}

export function documentStampOf({ size, modified_at }: DocumentFile): string {
  return `${size}-${Math.round(modified_at)}`
}

async function writeOf(collection: Collection, file: DocumentFile, text: string, stamp: string): Promise<UnitWrite> {
  // Split before the redaction: a redacted secret of several lines becomes one line, but line numbers must match the file.
  const raw = await parseDocument(text, formatOf(file.path) ?? "text")
  const { record, redactions } = redactRecord({ title: raw.title, sections: raw.sections })
  const parsed = { ...raw, ...(record as Pick<ParsedDocument, "title" | "sections">) }
  const name = storedName(file.path)
  const id = documentKey(collection, file.path)
  const at = Math.round(file.modified_at)
  const messages = messagesOf(id, parsed, collection)
  return {
    source: "docs",
    unit: { key: id, path: join(collection.root, name), stamp, bornAt: at, modifiedAt: at },
    sourceExists: true,
    cursor: "",
    connector_version: DOCUMENTS_VERSION,
    redaction_version: REDACTION_VERSION,
    // Raw records are not stored, because the file itself can be read again.
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
              project: collection.project,
            },
          ],
    isComplete: true,
    dropsMissing: true,
    skipped: parsed.problems.map((reason) => ({ reason, where: name })),
    unknown: {},
    redactions,
  }
}

/** Returns the key under which a document is stored. */
export function documentKey({ name }: Collection, path: string): string {
  return `${name}/${storedName(path)}`
}

/** Returns the redacted name of a document. A hash distinguishes documents whose names differ only by a secret. */
export function storedName(path: string): string {
  const name = redactName(path)
  return name === path ? path : `${name}~${hash("sha256", path, "hex").slice(0, 8)}`
}

function messagesOf(id: string, { sections }: ParsedDocument, { kind }: Collection): Message[] {
  const headings = sections.map((section) => section.headings.at(-1) ?? "")
  const byHeading = Map.groupBy(headings, (heading) => heading.toLowerCase())
  const origin = kind === "git" || kind === "npm" ? ("web" as const) : ("document" as const)
  return sections
    .filter((section) => section.text.trim() !== "")
    .map((section) => {
      const heading = section.headings.at(-1) ?? ""
      const isUnique = heading !== "" && byHeading.get(heading.toLowerCase())!.length === 1
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
