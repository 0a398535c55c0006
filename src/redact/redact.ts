import type { RawRecord } from "../core/record.ts"
import { findAssignments, isSecretValue } from "./assignments.ts"
import { findBlocks } from "./blocks.ts"
import { findCommands } from "./commands.ts"
import { type Hints, hintsOf } from "./hints.ts"
import { findJwks, JWK_FIELDS } from "./manifests.ts"
import { mayContainSecret } from "./may-contain-secret.ts"
import {
  EDGE_RULES,
  PRIVATE_KEY_RULE,
  PRIVATE_RULE,
  RUN_RULES,
  type Span,
  TOKEN_RULES,
  WEBHOOK_RULES,
} from "./rules.ts"
import { ruleFor, secretKind } from "./secret-names.ts"
import { findLogins, findWidePasswords } from "./spoken.ts"
import { findTokens } from "./tokens.ts"
import { findPgpass, findSignatures, findUrls } from "./urls.ts"
import { decodedView, foldedView, type TextView, unwrappedView, visibleView } from "./view.ts"

/**
 * Replaces every secret in a text with `[REDACTED:rule]`. `key` is the JSON field or variable name of the text. Never throws;
 * redacting twice changes nothing.
 */
export function redactText(text: string, key?: string): string {
  return redact(text, key, undefined)
}

/**
 * Redacts every string in a record, and every object key that is a secret itself. Changes the record in place, but returns a new
 * object if a key of the record was a secret. The caller must limit the depth of the record. Never throws.
 */
export function redactRecord(record: RawRecord): { record: RawRecord; redactions: Record<string, number> } {
  const redactions: Record<string, number> = {}
  return { record: redactObject(record, redactions) as RawRecord, redactions }
}

/** The minimum length of a text that can contain a secret. Many strings of a record are shorter: types, names, ids. */
const MIN_TEXT_LENGTH = 6
/** The maximum number of passes. One is enough except for deliberately awkward texts, and every pass leaves less to redact. */
const MAX_PASSES = 8

function redact(text: string, key: string | undefined, redactions: Record<string, number> | undefined): string {
  let result = text
  for (let pass = 0; pass < MAX_PASSES && result.length >= MIN_TEXT_LENGTH; pass++) {
    const spans = findSpans(result, key)
    if (spans.length === 0) break
    if (redactions) for (const { rule } of spans) redactions[rule] = (redactions[rule] ?? 0) + 1
    result = replaceSpans(result, spans)
  }
  return result
}

/**
 * Returns spans in order, without overlaps. Also searches the text without colours and invisible characters, with Latin letters
 * in place of look-alikes, and with escapes decoded.
 */
function findSpans(text: string, key: string | undefined): Span[] {
  if (isPlain(text)) {
    const field = fieldSpan(text, key)
    return field ? [field] : NO_SPANS
  }
  const spans: Span[] = []
  const hints = findInLines(text, key, spans)
  const visible =
    hints.hasWideCharacters || hints.mayContainColour ? visibleView(text, hints.hasWideCharacters) : undefined
  if (visible) findInView(visible, findInLines, key, spans)
  const folded = hints.hasWideCharacters ? foldedView(text) : undefined
  if (folded) findInView(folded, findInLines, key, spans)
  const decoded = hints.mayContainEscape ? decodedView(text) : undefined
  if (decoded) findInView(decoded, findInLines, key, spans)
  return spans.length === 0 ? spans : joinSpans(withoutRedacted(text, spans))
}

/** Searches the text as it is and, if a screen wrapped its lines, also without the line breaks that the screen added. */
function findInLines(text: string, key: string | undefined, spans: Span[]): Hints {
  const { hints, wraps } = runScanners(text, key, spans)
  if (wraps.length > 0) findInView(unwrappedView(text, wraps), runScanners, key, spans)
  return hints
}

function findInView(
  view: TextView,
  find: typeof findInLines | typeof runScanners,
  key: string | undefined,
  spans: Span[],
): void {
  const viewSpans: Span[] = []
  find(view.text, key, viewSpans)
  for (const span of viewSpans) spans.push(view.inText(span))
}

/** Runs the scanners, each only if a first pass over the text found a hint for it. */
function runScanners(text: string, key: string | undefined, spans: Span[]): { hints: Hints; wraps: readonly number[] } {
  const hints = hintsOf(text)
  if (hints.mayContainPrivateText) findBlocks(text, spans)
  const wraps = text.length < 20 ? [] : findTokens(text, spans, key !== undefined && ID_FIELD.test(key))
  if (hints.mayContainUrl || (hints.hasPercentSign && contains(text, "%2F%2F"))) findUrls(text, spans)
  if (hints.hasAmpersand) findSignatures(text, spans)
  if (hints.flags.length > 0) findCommands(text, hints.flags, spans)
  if (hints.names.length > 0) findAssignments(text, hints.names, spans)
  if (hints.slashes.length > 0) findLogins(text, hints.slashes, spans)
  if (hints.hasWideCharacters) findWidePasswords(text, spans)
  if (hints.mayContainJwk) findJwks(text, spans)
  if (hints.mayContainPgpass) findPgpass(text, spans)
  const field = fieldSpan(text, key)
  if (field) spans.push(field)
  return { hints, wraps }
}

/**
 * Whether a text is an id, a time or a word, like most strings of a record. Such a text is a secret only if its field's name says
 * so.
 */
function isPlain(text: string): boolean {
  if (text.length < 20) return PLAIN_WORD.test(text)
  if (text.length === 24) return text[10] === "T" && PLAIN_TIME.test(text)
  return text.length === 36 && text[23] === "-" && PLAIN_ID.test(text)
}

const PLAIN_WORD = /^[\w./-]+$/
const PLAIN_TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/
const PLAIN_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Returns the span of the complete text if the name of its field makes it a secret. */
function fieldSpan(text: string, key: string | undefined): Span | undefined {
  // A redacted key contains the name of a rule, which says nothing about its value.
  const kind = key === undefined || key.includes("[REDACTED:") ? undefined : secretKind(key)
  return kind && isSecretValue(text, kind) ? { start: 0, end: text.length, rule: ruleFor(kind) } : undefined
}

const NO_SPANS: Span[] = []

/**
 * Fields that contain ids. Agents connect records by ids, which are as random as tokens, so only tokens of known issuers count
 * there.
 */
const ID_FIELD = /ids?$/i

const MARKER = /\[REDACTED:([a-z0-9-]{1,40})\]/g
const RULES = new Set([
  ...[TOKEN_RULES, EDGE_RULES, RUN_RULES, WEBHOOK_RULES].flatMap((rules) => rules.map((rule) => rule.name)),
  ...[PRIVATE_RULE, PRIVATE_KEY_RULE, "aws-secret-key", "url-password", "url-token", "url-signature"],
  ...["password", "secret", "authorization", "cookie", "token"],
])

/** Removes spans that overlap a marker of an earlier pass. A private block or key that contains a marker is still redacted. */
function withoutRedacted(text: string, spans: Span[]): Span[] {
  if (!contains(text, "[REDACTED:")) return spans
  const markers: Span[] = []
  for (const match of text.matchAll(MARKER)) {
    if (RULES.has(match[1]!)) markers.push({ start: match.index, end: match.index + match[0].length, rule: match[1]! })
  }
  const sorted = spans.sort((a, b) => a.start - b.start)
  let next = 0
  return sorted.filter((span) => {
    while (next < markers.length && markers[next]!.end <= span.start) next++
    const marker = markers[next]
    if (!marker || marker.start >= span.end) return true
    return span.rule === PRIVATE_RULE || span.rule === PRIVATE_KEY_RULE
  })
}

function joinSpans(spans: Span[]): Span[] {
  const order = new Map(spans.map((span, index) => [span, index]))
  const sorted = [...spans].sort((a, b) => a.start - b.start || order.get(a)! - order.get(b)!)
  const joined: (Span & { rank: number })[] = []
  for (const span of sorted) {
    const rank = rankOf(span)
    const lastSpan = joined[joined.length - 1]
    if (!lastSpan || span.start >= lastSpan.end) joined.push({ ...span, rank })
    else {
      if (rank < lastSpan.rank) Object.assign(lastSpan, { rule: span.rule, rank })
      lastSpan.end = Math.max(lastSpan.end, span.end)
    }
  }
  return joined
}

function rankOf(span: Span): number {
  if (span.rule === PRIVATE_RULE) return 0
  if (span.rule === PRIVATE_KEY_RULE) return 1
  return RULES_WITHOUT_ISSUER.has(span.rule) ? 3 : 2
}

const RULES_WITHOUT_ISSUER = new Set([
  "token",
  "password",
  "secret",
  "authorization",
  "cookie",
  "url-password",
  "url-token",
  "url-signature",
])

function replaceSpans(text: string, spans: Span[]): string {
  const pieces: string[] = []
  let from = 0
  for (const { start, end, rule } of spans) {
    pieces.push(text.slice(from, start), `[REDACTED:${rule}]`)
    from = end
  }
  pieces.push(text.slice(from))
  return pieces.join("")
}

function contains(text: string, piece: string): boolean {
  return text.indexOf(piece) !== -1
}

function redactValue(value: unknown, key: string | undefined, redactions: Record<string, number>): unknown {
  if (typeof value === "string") return value.length < MIN_TEXT_LENGTH ? value : redact(value, key, redactions)
  if (typeof value !== "object" || value === null) return value
  return Array.isArray(value) ? redactList(value, key, redactions) : redactObject(value as RawRecord, redactions)
}

/** Redacts a list. In a list of a command's arguments, the item before a secret names it: `["--password", "…"]`. */
function redactList(list: unknown[], key: string | undefined, redactions: Record<string, number>): unknown[] {
  for (let i = 0; i < list.length; i++) {
    const previous = list[i - 1]
    const flag = typeof previous === "string" && previous.length < 60 && previous.startsWith("-") ? previous : undefined
    list[i] = redactValue(list[i], flag ?? key, redactions)
  }
  return list
}

function redactObject(object: RawRecord, redactions: Record<string, number>): RawRecord {
  const variableName = nameInside(object)
  const isJsonWebKey = typeof object.kty === "string"
  let hasSecretKey = false
  for (const key in object) {
    const value = object[key]
    if (typeof value === "string" || (typeof value === "object" && value !== null)) {
      const name =
        variableName !== undefined && VALUE_KEY.test(key)
          ? variableName
          : isJsonWebKey && JWK_FIELDS.has(key)
            ? "private_key"
            : key
      const clean = redactValue(value, name, redactions)
      if (clean !== value) setField(object, key, clean)
    }
    if (key.length >= MIN_KEY_LENGTH && !PLAIN_KEY.test(key) && redact(key, OBJECT_KEY_FIELD, undefined) !== key)
      hasSecretKey = true
  }
  return hasSecretKey ? withCleanKeys(object, redactions) : object
}

/** The minimum length of an object key that may be a secret. Shorter keys are field names. */
const MIN_KEY_LENGTH = 16
/** Matches typical field names. */
const PLAIN_KEY = /^[A-Za-z_]{1,36}$/
/** The field name that is assumed for object keys. They are judged like ids, because many objects use ids as keys. */
const OBJECT_KEY_FIELD = "id"

/**
 * The name in `{ "name": "DB_PASSWORD", "value": "…" }`, as containers and CI systems list their environment, or in the
 * capitalised form in which AWS lists parameters.
 */
function nameInside(object: RawRecord): string | undefined {
  if (typeof (object.value ?? object.Value ?? object.ParameterValue) !== "string") return undefined
  const name = object.name ?? object.key ?? object.variable ?? object.Name ?? object.Key ?? object.ParameterKey
  return typeof name === "string" ? name : undefined
}

const VALUE_KEY = /^(?:[vV]alue|ParameterValue)$/

function withCleanKeys(object: RawRecord, redactions: Record<string, number>): RawRecord {
  const clean: RawRecord = {}
  for (const key of Object.keys(object)) {
    const redactedKey = redact(key, OBJECT_KEY_FIELD, redactions)
    let name = redactedKey
    for (let n = 2; Object.hasOwn(clean, name); n++) name = `${redactedKey} (${n})`
    setField(clean, name, object[key])
  }
  return clean
}

/** Sets a field. In JSON, `__proto__` is an ordinary key. */
function setField(object: RawRecord, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}

/**
 * Redacts the name of a file, a branch or a symbol, so that it can be stored and shown. The same name always yields the same
 * text, so a lookup can redact the requested name and compare the results.
 */
export function redactName(name: string): string {
  return mayContainSecret(name) ? redactText(name) : name
}
