import type { SourceId } from "./conversation.ts"

/**
 * The name of a conversation or one of its messages (`claude_code:1f3c…#12`), or of a document or one of its sections
 * (`docs:react/hooks.md§Rules`). If several people share a history, each conversation has an owner: `alice/claude_code:1f3c…#12`.
 * Conversations in a person's own history have no owner.
 */
export type Ref = { owner?: string; source: SourceId; id: string; number?: number; section?: string }

/** A ref as a person may type it: a complete ref, a native id or a unique prefix of one, each with or without `#number`. */
export type RefQuery = { owner?: string; source?: SourceId; prefix: string; number?: number; section?: string }

export function formatRef(ref: Ref): string {
  const name = `${sourceWithOwner(ref)}:${ref.id}`
  if (ref.section !== undefined) return `${name}§${ref.section}`
  return ref.number === undefined ? name : `${name}#${ref.number}`
}

/** Parses a ref that a person typed. Returns undefined if the text cannot be a ref. */
export function parseRef(text: string): RefQuery | undefined {
  const [, owner, typed] = /^(?:([a-z0-9][\w.-]*)\/(?=[a-z][a-z0-9_]*:))?(.*)$/s.exec(text.trim())!
  const query = parseWithoutOwner(typed!)
  return query && owner !== undefined ? { owner, ...query } : query
}

/** The part of a ref before the colon. Owner and source are stored and compared as this one value. */
export function sourceWithOwner({ owner, source }: Pick<Ref, "owner" | "source">): string {
  return owner === undefined ? source : `${owner}/${source}`
}

export function refFrom(sourceWithOwner: string, id: string): Ref {
  const slash = sourceWithOwner.lastIndexOf("/")
  const source = sourceWithOwner.slice(slash + 1)
  return slash === -1 ? { source, id } : { owner: sourceWithOwner.slice(0, slash), source, id }
}

/** Parses a complete ref. Returns undefined if it has no source. */
export function parseCompleteRef(text: string): Ref | undefined {
  const { prefix: id, source, ...rest } = parseRef(text) ?? {}
  return source === undefined || id === undefined ? undefined : { ...rest, source, id }
}

/** Returns the owner in a ref from a team's history: `ann` in `ann/claude_code:1f3c`. */
export function ownerIn(text: string): string | undefined {
  return parseCompleteRef(text)?.owner
}

/** Returns the ref of the conversation that contains this message or section. */
export function conversationRefOf({ owner, source, id }: Ref): Ref {
  return { owner, source, id }
}

/** Returns the ref of another conversation of the same agent and owner, such as a parent or the original of a fork. */
export function siblingRef(ref: Ref, id: string): Ref {
  return { ...conversationRefOf(ref), id }
}

export function isSameConversation(a: Ref, b: Ref): boolean {
  return a.id === b.id && a.source === b.source && a.owner === b.owner
}

function parseWithoutOwner(typed: string): RefQuery | undefined {
  if (typed.startsWith("docs:")) return parseDocument(typed.slice("docs:".length))
  const match = /^(?:([a-z][a-z0-9_]*):)?([^\s#]+)(?:#(\d{1,9}))?$/.exec(typed)
  if (!match) return undefined
  const [, source, prefix, number] = match
  return {
    prefix: prefix!,
    source,
    number: number === undefined ? undefined : Number(number),
  }
}

/** Parses the ref of a document. Unlike other ids, a document's path may contain spaces and number signs. */
function parseDocument(typed: string): RefQuery | undefined {
  const [, prefix, section, number] = /^([^§]+?)(?:§(.*)|#(\d{1,9}))?$/s.exec(typed) ?? []
  if (prefix === undefined) return undefined
  return {
    source: "docs",
    prefix,
    section,
    number: number === undefined ? undefined : Number(number),
  }
}

/** The name of the collection that contains a document. The document's id begins with it. */
export function collectionOf(documentId: string): string {
  return documentId.slice(0, documentId.indexOf("/"))
}

/** The ref of the message that a search row shows. A row for a section already has the section's ref as its id. */
export function hitRef({ id, message_index }: { id: string; message_index: number }): string {
  return id.includes("§") ? id : `${id}#${message_index}`
}
