import type { SourceId } from "./conversation.ts"

/**
 * Names a conversation, or one message in it: `claude_code:1f3c…#12`; or a document, or one section in it:
 * `docs:react/hooks.md§Rules`. Printed everywhere, accepted everywhere.
 */
export type Ref = { source: SourceId; id: string; number?: number; section?: string }

/** What a person may type: a whole ref, a native id or a unique prefix of one, each with `#number` or without. */
export type RefQuery = { source?: SourceId; prefix: string; number?: number; section?: string }

export function formatRef(ref: Ref): string {
  const name = `${ref.source}:${ref.id}`
  if (ref.section !== undefined) return `${name}§${ref.section}`
  return ref.number === undefined ? name : `${name}#${ref.number}`
}

/** Undefined when the text cannot be a ref at all. */
export function parseRef(text: string): RefQuery | undefined {
  const typed = text.trim()
  if (typed.startsWith("docs:")) return parseDocument(typed.slice("docs:".length))
  const match = /^(?:([a-z][a-z0-9_]*):)?([^\s#]+)(?:#(\d{1,9}))?$/.exec(typed)
  if (!match) return undefined
  const [, source, prefix, number] = match
  return {
    prefix: prefix!,
    ...(source !== undefined && { source }),
    ...(number !== undefined && { number: Number(number) }),
  }
}

/** A path may hold spaces and number signs. */
function parseDocument(typed: string): RefQuery | undefined {
  const [, prefix, section, number] = /^([^§]+?)(?:§(.*)|#(\d{1,9}))?$/s.exec(typed) ?? []
  if (prefix === undefined) return undefined
  return {
    source: "docs",
    prefix,
    ...(section !== undefined && { section }),
    ...(number !== undefined && { number: Number(number) }),
  }
}

/** A document's id begins with the name of its collection. */
export function collectionOf(documentId: string): string {
  return documentId.slice(0, documentId.indexOf("/"))
}

/** The message that a search row shows. A section's row is named by its heading already. */
export function hitRef({ id, message_index }: { id: string; message_index: number }): string {
  return id.includes("§") ? id : `${id}#${message_index}`
}
