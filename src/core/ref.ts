import { SOURCES, type SourceId } from "./conversation.ts"

/** Names a conversation, or one message in it: `claude_code:1f3c…#12`. Printed everywhere, accepted everywhere. */
export type Ref = { source: SourceId; id: string; number?: number }

/** What a person may type: a whole ref, a native id or a unique prefix of one, each with `#number` or without. */
export type RefQuery = { source?: SourceId; prefix: string; number?: number }

export function formatRef(ref: Ref): string {
  const name = `${ref.source}:${ref.id}`
  return ref.number === undefined ? name : `${name}#${ref.number}`
}

/** Undefined when the text cannot be a ref at all. */
export function parseRef(text: string): RefQuery | undefined {
  const match = /^(?:([a-z][a-z0-9_]*):)?([^\s#]+)(?:#(\d{1,9}))?$/.exec(text.trim())
  if (!match) return undefined
  const [, source, prefix, number] = match
  if (source !== undefined && !isSource(source)) return undefined
  return {
    prefix: prefix!,
    ...(source !== undefined && { source: source as SourceId }),
    ...(number !== undefined && { number: Number(number) }),
  }
}

export function isSource(text: string): text is SourceId {
  return (SOURCES as readonly string[]).includes(text)
}
