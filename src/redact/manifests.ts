import { Buffer } from "node:buffer"
import type { RereadBudget, Span } from "./rules.ts"
import { isGenerated, isPassword, isPlaceholder } from "./values.ts"

// Finds secrets in documents that declare their type: the values of a Kubernetes `kind: Secret`, and some fields of a JSON Web
// Key.

const KIND_FIELD = /kind\\{0,8}["'`]?[ \t]{0,3}:[ \t]{0,3}\\{0,8}["'`]?$/
const MAX_MANIFEST_CHARS = 4_000
const DOCUMENT_END = /(?:\n|\\n)---|(?:\n|\\n)kind:/
const DATA_FIELD = /(?:^|[\n,{ "'`]|\\n|\\["'`])(data|stringData)\\{0,8}["'`]?[ \t]{0,3}:[ \t]{0,3}(\{|\r?\n|\\n)/g
const DATA_ENTRY =
  /(?:[ \t]{1,20}|[ \t]{0,20}\\{0,8}["'`])[\w.-]{1,80}\\{0,8}["'`]?[ \t]{0,3}:[ \t]{0,3}\\{0,8}["'`]?([^\s"'`\\,{}]{1,4096})?\\{0,8}["'`]?,?[ \t]{0,8}(?:\r?\n|\\n|(?=["'`\\]|\}|$))/y

/**
 * Finds the values of the Kubernetes secret whose `kind` is declared here. Returns false if no `kind` field ends at this
 * position.
 */
export function findManifest(text: string, at: number, rereads: RereadBudget, spans: Span[]): boolean {
  if (rereads.left <= 0 || !KIND_FIELD.test(text.slice(Math.max(0, at - 24), at))) return false
  const following = text.slice(at, at + MAX_MANIFEST_CHARS)
  const end = at + (DOCUMENT_END.exec(following)?.index ?? following.length)
  const preceding = text.slice(Math.max(0, at - MAX_MANIFEST_CHARS), at)
  const start = at - preceding.length + Math.max(preceding.lastIndexOf("\n---"), 0)
  const document = text.slice(start, end)
  rereads.left -= document.length
  for (const data of document.matchAll(DATA_FIELD)) {
    DATA_ENTRY.lastIndex = data.index + data[0].length
    for (let entry = DATA_ENTRY.exec(document); entry; entry = DATA_ENTRY.exec(document)) {
      const value = entry[1]
      if (!value || !isSecretEntry(value, data[1] === "data")) continue
      const from = start + entry.index + entry[0].lastIndexOf(value)
      spans.push({ start: from, end: from + value.length, rule: "secret" })
    }
  }
  return true
}

/** Matches readable text. A value that does not match is a key in binary form. */
const READABLE = /^[\t\n\r -~]*$/

function isSecretEntry(value: string, isBase64: boolean): boolean {
  if (value.length < 4 || isPlaceholder(value)) return false
  const plain =
    isBase64 && /^[A-Za-z0-9+/]+={0,2}$/.test(value) ? Buffer.from(value, "base64").toString("latin1") : value
  return plain.length > 40 || !READABLE.test(plain) || isPassword(plain.trim(), true) || isGenerated(plain.trim())
}

const KEY_TYPE = /\\{0,8}["']kty\\{0,8}["']/g
const MAX_JWK_CHARS = 4_000
const SECRET_FIELD =
  /["'](?:d|p|q|dp|dq|qi|k)\\{0,8}["'][ \t\r\n]{0,8}:[ \t\r\n]{0,8}\\{0,8}["']([A-Za-z0-9_-]{16,1400})(?=\\{0,8}["'])/g
/** The private fields of a JSON Web Key. */
export const JWK_FIELDS: ReadonlySet<string> = new Set(["d", "p", "q", "dp", "dq", "qi", "k"])

/** Finds the private fields of JSON Web Keys, each of which is one flat object. */
export function findJwks(text: string, spans: Span[]): void {
  let previousEnd = 0
  for (const type of text.matchAll(KEY_TYPE)) {
    if (type.index < previousEnd) continue
    const from = Math.max(previousEnd, type.index - MAX_JWK_CHARS)
    const start = Math.max(from, text.slice(from, type.index).lastIndexOf("{") + from)
    const following = text.slice(type.index, type.index + MAX_JWK_CHARS)
    const closingBrace = following.indexOf("}")
    previousEnd = type.index + (closingBrace === -1 ? following.length : closingBrace)
    const key = text.slice(start, previousEnd)
    for (const field of key.matchAll(SECRET_FIELD)) {
      const end = start + field.index + field[0].length
      spans.push({ start: end - field[1]!.length, end, rule: "private-key" })
    }
  }
}
