import { createHash } from "node:crypto"
import type { Origin, Part } from "../../core/conversation.ts"
import { isRecord, number, record, string } from "../../core/record.ts"

// What is taken out of records before they are kept: long texts are cut, bytes become a description of themselves.

const MAX_TEXT = 1_000_000

/** What is kept of an image or another attachment in place of its bytes. */
export type Digest = { sha256: string; bytes: number; media_type?: string }

/**
 * An image as its digest was kept; anything else that stands in its place says nothing. The order of the fields must stay:
 * a message of Codex without an id has its key from the text of its parts.
 */
export function imagePart(kept: unknown, origin: Origin, text = ""): Part {
  const digest = record(kept)
  const [mime, sha256, bytes] = [string(digest?.media_type), string(digest?.sha256), number(digest?.bytes)]
  return {
    type: "image",
    text,
    origin,
    mime,
    sha256,
    bytes,
  }
}

/** A copy in which every text past the limit is cut and says so. */
export function withoutBulk<T>(value: T): T {
  if (typeof value === "string") return cutText(value) as T
  if (Array.isArray(value)) return value.map(withoutBulk) as T
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, withoutBulk(field)])) as T
}

function cutText(text: string): string {
  if (text.length <= MAX_TEXT) return text
  const sha256 = createHash("sha256").update(text).digest("hex")
  return `${text.slice(0, MAX_TEXT)}\n[dex: ${text.length - MAX_TEXT} characters not kept, sha256 ${sha256}]`
}

export function digestOf(bytes: Uint8Array, media_type?: string): Digest {
  const sha256 = createHash("sha256").update(bytes).digest("hex")
  return { sha256, bytes: bytes.length, media_type }
}

/** The digest of a `data:` URI; undefined for any other address. */
export function digestOfDataUri(uri: string): Digest | undefined {
  if (!uri.startsWith("data:")) return undefined
  const comma = uri.indexOf(",")
  if (comma === -1) return undefined
  const [media_type, ...parameters] = uri.slice("data:".length, comma).split(";")
  const encoding = parameters.includes("base64") ? "base64" : "utf8"
  return digestOf(Buffer.from(uri.slice(comma + 1), encoding), media_type || undefined)
}
