import { isCutAt } from "./cut.ts"
import { type Span, WEBHOOK_RULES } from "./rules.ts"
import { isPassword, isPlaceholder, looksRandom } from "./values.ts"

// Finds passwords in URLs: `scheme://user:password@host`, and URLs that are passwords themselves. Also finds signatures in URLs,
// and the lines of a .pgpass file.

const SCHEME = /:(?:\\*\/){2}|%3A%2F%2F/gi
const USER_INFO = /([^\s:@/?#"'`<>\\,()[\]|]{0,256}):([^\s/"'`<>\\]{0,256})@(?=[\w.[%$-])/y
const USER_INFO_ENCODED = /([\w.~-]{0,64})(?:%3A|:)((?:[\w.~!*-]|%(?!40)[0-9A-F]{2}){1,64})(?:%40|@)(?=[\w.-])/iy
/** Matches a password that contains a slash. Paths contain slashes too, so it must look random. */
const USER_INFO_SLASH = /[\w.~-]{1,64}:([^\s/"'`<>\\@]{2,64}\/[^\s"'`<>\\@]{2,64})@(?=[\w.-]+(?:[:/\s"'`]|$))/y
/** Matches a user and the beginning of a password, for a text that was cut off there. */
const CUT_USER_INFO = /[\w.~%-]{0,64}:([A-Za-z0-9_~!*%+-]{10,256})(?![\w:/@])/y
const TOKEN_ONLY = /([A-Za-z0-9_-]{16,256})@(?=[\w.-]+)/y
/** Matches words that documentation uses in place of a password, and user names, which local databases use as passwords. */
const PLACEHOLDER_PARTS =
  /pass(?:word|wd|phrase|code)?|p[a4]ssw[o0]rd|pwd?|secret|token|xxx*|\*+|x-oauth-basic|\.{2,}|user(?:name)?|admin|root|postgres|mysql|redis|guest|test|example|foo|bar|my|your|db|mongo|rabbitmq|\d{1,5}|api_?key|key|auth|[-_]+/gi

/** Matches the placeholder for a password in a URL that has a token in the position of the user name. */
const PLACEHOLDER_PASSWORD = /^(?:x-oauth-basic|x|)$/
const TOKEN_USER = /^(?=\D{0,20}\d)(?=[^A-Za-z]{0,20}[A-Za-z])[A-Za-z0-9_-]{16,256}$/

export function findUrls(text: string, spans: Span[]): void {
  SCHEME.lastIndex = 0
  for (let hit = SCHEME.exec(text); hit; hit = SCHEME.exec(text)) {
    const at = SCHEME.lastIndex
    const span = findUserInfo(text, at, hit[0][0] === "%") ?? findWebhook(text, at)
    if (span) spans.push(span)
  }
}

function findUserInfo(text: string, at: number, encoded: boolean): Span | undefined {
  const pattern = encoded ? USER_INFO_ENCODED : USER_INFO
  pattern.lastIndex = at
  const info = pattern.exec(text)
  if (info) {
    const user = info[1]!
    const password = info[2]!
    if (PLACEHOLDER_PASSWORD.test(password) && TOKEN_USER.test(user))
      return { start: at, end: at + user.length, rule: "url-token" }
    const end = pattern.lastIndex - (encoded && text.slice(0, pattern.lastIndex).endsWith("%40") ? 3 : 1)
    if (password === user || password.replace(PLACEHOLDER_PARTS, "") === "" || isReference(password)) return undefined
    return { start: end - password.length, end, rule: "url-password" }
  }
  CUT_USER_INFO.lastIndex = at
  const cutInfo = encoded ? null : CUT_USER_INFO.exec(text)
  if (cutInfo && isCutAt(text, CUT_USER_INFO.lastIndex) && looksRandom(cutInfo[1]!, 10)) {
    return { start: CUT_USER_INFO.lastIndex - cutInfo[1]!.length, end: CUT_USER_INFO.lastIndex, rule: "url-password" }
  }
  USER_INFO_SLASH.lastIndex = at
  const slashed = encoded ? null : USER_INFO_SLASH.exec(text)
  if (slashed && !/^\d{1,5}\//.test(slashed[1]!) && looksRandom(slashed[1]!, 10)) {
    const end = USER_INFO_SLASH.lastIndex - 1
    return { start: end - slashed[1]!.length, end, rule: "url-password" }
  }
  TOKEN_ONLY.lastIndex = at
  const token = TOKEN_ONLY.exec(text)
  if (token && looksRandom(token[1]!, 16)) return { start: at, end: at + token[1]!.length, rule: "url-token" }
  return undefined
}

/** Whether a password is only the name of a variable or a placeholder. Everything else counts as a real password. */
function isReference(password: string): boolean {
  return (
    password.length < 4 || /^[$%{<[#]|[}>\]]$|\$\{|\{\{|%s|%v|\*{3}|x{4}/.test(password) || isPlaceholderWord(password)
  )
}

function isPlaceholderWord(password: string): boolean {
  return password.length < 20 ? isPlaceholder(password) : false
}

function findWebhook(text: string, at: number): Span | undefined {
  for (const rule of WEBHOOK_RULES) {
    rule.url.lastIndex = at
    const url = rule.url.exec(text)
    if (!url?.[1]) continue
    const end = rule.url.lastIndex
    const isExample = /X{6}|x{6}|0{7}|\.\.\.|your/.test(url[1])
    return isExample ? undefined : { start: end - url[1].length, end, rule: rule.name }
  }
  return undefined
}

const SIGNATURE = /(?:[?&;]|amp;)(?:sig|x-(?:amz|goog)-(?:signature|security-token))=([A-Za-z0-9%+/=_.~-]{20,2048})/gi

/** Finds signatures in URLs that are valid for a limited time. */
export function findSignatures(text: string, spans: Span[]): void {
  for (const match of text.matchAll(SIGNATURE)) {
    const end = match.index + match[0].length
    if (looksRandom(match[1]!, 20)) spans.push({ start: end - match[1]!.length, end, rule: "url-signature" })
  }
}

const PGPASS =
  /(?<![\w.*:-])[\w.*-]{1,80}:\d{4,5}:(?=[^:]{0,62}[a-z*])[\w.*-]{1,63}:(?=[^:]{0,62}[a-z])[\w.*-]{1,63}:((?:[^\s:"'`\\]|\\[:\\]){4,128})(?=\s|$|["'`]|\\n)/gi

/** Finds the password in a line of .pgpass: `host:port:database:user:password`. */
export function findPgpass(text: string, spans: Span[]): void {
  for (const match of text.matchAll(PGPASS)) {
    const end = match.index + match[0].length
    if (isPassword(match[1]!, true)) spans.push({ start: end - match[1]!.length, end, rule: "password" })
  }
}
