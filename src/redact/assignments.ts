import { isCutAt } from "./cut.ts"
import type { RereadBudget, Span } from "./rules.ts"
import { ruleFor, SECRET_WORD, type SecretKind, secretKind } from "./secret-names.ts"
import { findLatinPassword, findSeedPhrase, LATIN_WORDS, SEED_WORDS } from "./spoken.ts"
import { findSeparatedValue, isNameCharacter } from "./unjoined.ts"
import { isGenerated, isPassword, isPlaceholder, looksRandom } from "./values.ts"

// Finds secrets that only their name reveals: `DB_PASSWORD=…`, `"api_key": "…"`, `--token …`, `Authorization: Basic …`, in
// environment dumps, JSON (also escaped), YAML, TOML, .npmrc, .netrc, connection strings, queries and code.

const WORDS =
  "pass(?:word|wd|phrase|code)?|pwd|psk|secret|token|key|cred(?:ential)?s?|auth(?:orization)?|cookie|crumb|jwt|bearer|basic"

/**
 * Matches a word of a secret's name, the rest of the name, and the separator before the value: a colon or an equals sign, `is`,
 * or the space after a flag, after a scheme of the Authorization header, or after the `password` of .netrc.
 */
const NAME_AND_SEPARATOR = new RegExp(
  `(?:${WORDS}|${LATIN_WORDS}|${SEED_WORDS})[\\w.-]{0,30}(?:[\\\\"'\`\\])*]{0,10}[ \\t\\u00a0]{0,3}(?:=>|:=|={1,3}|\\?\\?=|:(?!:)|%3[AD])|(?:[ \\t]+(?:is|was|lautet|ist|est|es)|['\u2019]s):?[ \\t]|(?=[ \\t])(?<=-[\\w-]{0,60}|bearer|basic|password|passwd)[ \\t]+)`,
  "iy",
)

/** Finds the secrets whose names begin at these positions, which come from `hintsOf`. */
export function findAssignments(text: string, positions: readonly number[], spans: Span[]): void {
  const rereadBudget: RereadBudget = { left: 2 * text.length + 4_000 }
  let next = 0
  let cookiesEnd = 0
  let lastName = ""
  let kind: SecretKind | undefined
  for (const at of positions) {
    if (at < next) continue
    NAME_AND_SEPARATOR.lastIndex = at
    const hit = NAME_AND_SEPARATOR.exec(text)
    if (!hit) {
      next = Math.max(next, findSeparatedValue(text, at, spans, rereadBudget))
      continue
    }
    next = NAME_AND_SEPARATOR.lastIndex
    const spokenSpan = findSeedPhrase(text, hit) ?? findLatinPassword(text, hit)
    if (spokenSpan) {
      spans.push(spokenSpan)
      next = spokenSpan.end
      continue
    }
    const name = nameAt(text, hit)
    const fullName = isProse(name.separator) ? nameInProse(text, name) : name.name
    if (fullName !== lastName) kind = secretKind(fullName)
    lastName = fullName
    if (kind === "cookie") {
      if (name.valueAt < cookiesEnd) continue
      cookiesEnd = findCookies(text, name.valueAt, spans)
      continue
    }
    const span = isSpaced(name.separator)
      ? findSpacedValue(text, name, kind)
      : findAssignedValue(text, name, kind ?? kindInQuery(text, name))
    if (!span) {
      if (isSpaced(name.separator)) next = Math.max(next, findSeparatedValue(text, at, spans, rereadBudget))
      continue
    }
    spans.push(span)
    if (span.end > name.valueAt) next = span.end
  }
}

type Name = { name: string; start: number; separator: string; valueAt: number }

function isSpaced(separator: string): boolean {
  return !/[:=]|%3/.test(separator)
}

function isProse(separator: string): boolean {
  return /^(?:[ \t]+(?:is|was|lautet|ist|est|es)|['\u2019]s)/i.test(separator)
}

/** Whether to redact the complete value of a field whose name indicates this kind of secret. */
export function isSecretValue(value: string, kind: SecretKind): boolean {
  if (isRedacted(value)) return false
  if (kind === "password") return isPassword(value, true)
  if (kind === "auth") return isAuthSecret(value)
  if (kind === "cookie") return cookieSpans(value, 0, value.length).length > 0
  return isGenerated(value)
}

/** The complete name that contains the matched word. Escapes (`\nAPI_KEY`) are not part of the name. */
function nameAt(text: string, hit: RegExpExecArray): Name {
  const end = hit.index + /^[\w.-]*/.exec(hit[0])![0].length
  let start = hit.index
  const minStart = Math.max(0, start - 60)
  while (start > minStart && isNameCharacter(text.charCodeAt(start - 1))) start--
  if (text[start - 1] === "\\" && "nrt".includes(text[start]!)) start++
  const valueAt = hit.index + hit[0].length
  return { name: text.slice(start, end), start, separator: text.slice(end, valueAt), valueAt }
}

function isRedacted(value: string): boolean {
  return value.includes("[REDACTED")
}

/** The kind of secret in a parameter such as `?key=…`. The name `key` alone means a secret only in a URL. */
function kindInQuery(text: string, { name, start, separator }: Name): SecretKind | undefined {
  const isQuery = name === "key" && separator === "=" && (text[start - 1] === "?" || text[start - 1] === "&")
  return isQuery ? "token" : undefined
}

function findAssignedValue(
  text: string,
  { name, separator, valueAt }: Name,
  kind: SecretKind | undefined,
): Span | undefined {
  if (!kind) return undefined
  if (kind === "auth") return authSpan(text, valueAt)
  if (name === "PASS" && separator === ":") return undefined // a test runner prints `PASS: name of the test`
  const isEnvironmentValue = isEnvironment(name, separator)
  const value = valueSpan(text, valueAt, isEnvironmentValue)
  if (!value) return undefined
  if (!value.quoted && /[([{<]/.test(text[value.end] ?? "")) return undefined
  return judgeValue(text, value, kind, value.quoted ? /^\\*["']/.test(separator) : isEnvironmentValue)
}

function judgeValue(
  text: string,
  value: { start: number; end: number; quoted: boolean },
  kind: SecretKind,
  isCertain: boolean,
): Span | undefined {
  const content = text.slice(value.start, value.end)
  if (isRedacted(content)) return undefined
  const isSecret = kind === "password" ? isPassword(content, isCertain) : isGenerated(content, value.quoted)
  if (!isSecret && !(/^[\w+/-]+$/.test(content) && isCutAt(text, value.end) && looksRandom(content, 10)))
    return undefined
  const rest =
    content.length >= MAX_UNQUOTED_CHARS - 2
      ? REST_OF_VALUE
      : kind === "password" && !value.quoted
        ? REST_OF_PASSWORD
        : undefined
  if (rest) rest.lastIndex = value.end
  return { start: value.start, end: rest?.test(text) ? rest.lastIndex : value.end, rule: ruleFor(kind) }
}

/** Whether the name and separator begin an assignment `NAME=value`, as `env` prints it and a shell accepts it. */
function isEnvironment(name: string, separator: string): boolean {
  return separator === "=" && /^[A-Z][A-Z0-9_]+$/.test(name)
}

const MAX_VALUE_LENGTH = 1_024
/** How many characters of an unquoted value are judged. If it is a secret, the complete value is redacted. */
const MAX_UNQUOTED_CHARS = 256
const NESTED_NAME = /[\w.-]{3,40}=(?=[^\s=])/y
const REST_OF_VALUE = /[^\s"'`\\,;&|<>(){}[\]]+/y
/**
 * Matches the rest of a password after a character that usually ends a value. Does not match if another name and value follow.
 */
const REST_OF_PASSWORD = /[&|;<>][^\s"'`\\=]{0,40}?(?=[.,!?)]{0,3}(?:[\s"'`\\]|$))/y
const UNQUOTED = /[^\s"'`\\,;&|<>(){}[\]]{1,256}/y
const UNQUOTED_ENVIRONMENT = /[^\s"'`\\]{1,256}/y

function valueSpan(
  text: string,
  from: number,
  isEnvironmentValue: boolean,
): { start: number; end: number; quoted: boolean } | undefined {
  let at = from
  while (at < from + 8 && (text[at] === " " || text[at] === "\t")) at++
  // Skip the asterisks after a bold name in Markdown: `**Password:** …`
  if (text[at] === "*" && text[at + 1] === "*" && text[at + 2] === " ") at += 3
  if (/[bBrRfFuU@$]/.test(text[at] ?? "") && /["']/.test(text[at + 1] ?? "")) at++
  let quote = at
  while (quote < at + 8 && text[quote] === "\\") quote++
  const mark = text[quote]
  if (mark === '"' || mark === "'" || mark === "`") {
    const start = quote + 1
    const end = quotedEnd(text, start, mark)
    if (end !== -1) return { start, end, quoted: true }
    UNQUOTED_ENVIRONMENT.lastIndex = start
    const unclosed = UNQUOTED_ENVIRONMENT.exec(text)?.[0].replace(/(?:\.{3}|…).*$/, "") ?? ""
    const isCut =
      unclosed.length > 0 && (start + unclosed.length === text.length || isCutAt(text, start + unclosed.length))
    return isCut ? { start, end: start + unclosed.length, quoted: true } : undefined
  }
  NESTED_NAME.lastIndex = at
  const nested = NESTED_NAME.exec(text)
  if (nested && SECRET_WORD.test(nested[0])) return undefined // the nested name has its own value, which is found separately
  const pattern = isEnvironmentValue ? UNQUOTED_ENVIRONMENT : UNQUOTED
  pattern.lastIndex = at
  const match = pattern.exec(text)
  if (!match) return undefined
  return { start: at, end: at + match[0].replace(/[.:!?)…]+$/, "").length, quoted: false }
}

/** Returns the end of a quoted value, or -1 if the quotation is not closed on the same line. */
function quotedEnd(text: string, start: number, mark: string): number {
  let end = text
    .slice(start, start + MAX_VALUE_LENGTH + 1)
    .search(mark === '"' ? /["\n]/ : mark === "'" ? /['\n]/ : /[`\n]/)
  if (end === -1) return -1
  end += start
  if (text[end] === "\n") return -1
  while (end > start && text[end - 1] === "\\") end--
  return end
}

/**
 * Finds a value that follows a space: after a flag, in a .netrc line, after a scheme of the Authorization header, or in a
 * sentence that states a password.
 */
function findSpacedValue(
  text: string,
  { name, start, separator, valueAt }: Name,
  kind: SecretKind | undefined,
): Span | undefined {
  if (/^(?:bearer|basic)$/i.test(name)) return schemeSpan(text, valueAt, name.toLowerCase())
  if (kind !== "password" && kind !== "token") return undefined
  const isInProse = isProse(separator)
  if (!isInProse && !/^--?[a-z]/i.test(name) && !isInNetrc(text, start)) return undefined
  const value = valueSpan(text, valueAt, false)
  if (!value || text[value.end] === "(") return undefined
  return judgeValue(text, value, kind, !isInProse)
}

/** Returns the name of a secret in prose, such as "API key" in "the API key is". In prose, a name consists of separate words. */
function nameInProse(text: string, { name, start }: Name): string {
  const precedingWord = /(\w{1,20})[ -]$/.exec(text.slice(Math.max(0, start - 24), start))
  return precedingWord ? `${precedingWord[1]}_${name}` : name
}

function isInNetrc(text: string, at: number): boolean {
  return /\b(?:login|machine|account|user)[ \t]+\S+(?:\s|\\[nt])+$/.test(text.slice(Math.max(0, at - 120), at))
}

const VALUE_AFTER_SCHEME = /["']?([A-Za-z0-9._~+/=:-]{8,1024})/y

function schemeSpan(text: string, at: number, scheme: string): Span | undefined {
  VALUE_AFTER_SCHEME.lastIndex = at
  const match = VALUE_AFTER_SCHEME.exec(text)
  if (!match) return undefined
  const value = match[1]!
  const isSecret = scheme === "basic" ? isBasicCredentials(value) : !isPlaceholder(value) && looksRandom(value, 16)
  const start = VALUE_AFTER_SCHEME.lastIndex - value.length
  return isSecret ? { start, end: VALUE_AFTER_SCHEME.lastIndex, rule: "authorization" } : undefined
}

/** Whether the value is the base64 of `user:password`. */
function isBasicCredentials(value: string): boolean {
  if (!/^[A-Za-z0-9+/_-]{6,1024}={0,2}$/.test(value)) return false
  const plain = Buffer.from(value, "base64").toString("utf8")
  return /^[\x20-\x7e\u00a0-\u{10ffff}]*:[\x20-\x7e\u00a0-\u{10ffff}]{3,}$/u.test(plain) && !plain.includes("\ufffd")
}

function isAuthSecret(value: string): boolean {
  const scheme = /^(basic|bearer|token|bot|key|apikey|api-key|digest|negotiate)[ +]/i.exec(value)
  const rest = scheme ? value.slice(scheme[0].length) : value
  return isBasicCredentials(rest) || isGenerated(rest)
}

const AUTH_VALUE =
  /[ \t]{0,4}\\{0,8}["'`]?(?:(?:basic|bearer|token|bot|key|apikey|api-key|ssws)[ \t]{1,3})?([A-Za-z0-9._~+/=:-]{8,1024})/iy
/** Matches the pair in `auth=("user", "password")`. */
const AUTH_PAIR = /[ \t]{0,4}\(\s{0,8}["'][^"'\n\\]{1,80}["'],\s{0,8}["']([^"'\s\\]{6,256})(?=["']\s{0,4}\))/iy
/** Matches the response in a header of digest authentication. */
const DIGEST_RESPONSE = /[ \t]{0,4}\\{0,8}["'`]?Digest [^\n]{0,600}?\bresponse=\\{0,8}"?([0-9a-f]{32,64})/iy

function authSpan(text: string, at: number): Span | undefined {
  for (const pattern of [AUTH_VALUE, AUTH_PAIR, DIGEST_RESPONSE]) {
    pattern.lastIndex = at
    const value = pattern.exec(text)?.[1]
    if (value === undefined) continue
    const isSecret =
      pattern === AUTH_VALUE
        ? isBasicCredentials(value) || isGenerated(value)
        : pattern === DIGEST_RESPONSE || isPassword(value, false)
    if (isSecret && !isRedacted(value)) {
      return { start: pattern.lastIndex - value.length, end: pattern.lastIndex, rule: "authorization" }
    }
  }
  return undefined
}

const COOKIE_LINE = /[ \t]{0,4}(?:\\{0,8}["'`])?([\w.~!#$%&*+^|-]{1,80}=[^\n\r"'\\`]{1,4096})/y

/** Finds the cookies in a header, and returns the end of the header. */
function findCookies(text: string, at: number, spans: Span[]): number {
  COOKIE_LINE.lastIndex = at
  const line = COOKIE_LINE.exec(text)
  if (!line) return at
  const end = COOKIE_LINE.lastIndex
  spans.push(...cookieSpans(text, end - line[1]!.length, end))
  return end
}

/** Finds the values in a Cookie or Set-Cookie header that identify a user or a session. */
function cookieSpans(text: string, from: number, to: number): Span[] {
  const spans: Span[] = []
  const COOKIE_PAIR = /([\w.~!#$%&*+^|-]{1,80})=([^\s;,"'\\]{8,4096})/g
  const line = text.slice(from, to)
  for (let pair = COOKIE_PAIR.exec(line); pair; pair = COOKIE_PAIR.exec(line)) {
    const value = pair[2]!
    if (isRedacted(value) || isPlaceholder(value)) continue
    if (!looksRandom(value, 16) && !(secretKind(pair[1]!) === "password")) continue
    const end = from + pair.index + pair[0].length
    spans.push({ start: end - value.length, end, rule: "cookie" })
  }
  return spans
}
