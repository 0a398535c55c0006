import type { Span } from "./rules.ts"
import { countKindChanges, looksRandom } from "./values.ts"

// Finds tokens of issuers for which there is no rule. Most consist of a short word or two, a separator, and a long random part.
// Ids have the same form, so the random part must be longer than an id's, or the words must indicate a secret.

const UNKNOWN_RULE = "token"
const MAX_LENGTH = 512

/**
 * Judges a piece of a run: letters, digits and `_.~-`. If slashes and plus signs follow, it may be the beginning of base64, which
 * ends with the run.
 */
export function findUnknownToken(text: string, from: number, end: number, runEnd: number): Span | undefined {
  const start = from + leadLength(text, from, end)
  const piece = text.slice(start, Math.min(end, start + MAX_LENGTH))
  const word = SECRET_WORD.exec(piece)
  if (word && indicatesSecret(word[2]!.toLowerCase(), piece.slice(word.index + word[0].length))) {
    return { start: start + word.index + word[1]!.length, end: withoutSeparators(text, end), rule: UNKNOWN_RULE }
  }
  const prefix = PREFIX.exec(piece)?.[0]
  if (prefix === undefined || ID_PREFIX.test(prefix)) return undefined
  const base64 = runEnd === end ? "" : text.slice(start + prefix.length, Math.min(runEnd, start + MAX_LENGTH))
  if (isMixedRandom(base64, 40) && !PATH.test(base64)) return { start, end: runEnd, rule: UNKNOWN_RULE }
  return isRandomBody(prefix, piece.slice(prefix.length))
    ? { start, end: withoutSeparators(text, end), rule: UNKNOWN_RULE }
    : undefined
}

/**
 * Returns the number of characters at the beginning that are not part of a token: a diff's mark, or an escape (`\n`, `\u0022`).
 */
function leadLength(text: string, from: number, end: number): number {
  let at = from
  if (text[from - 1] === "\\") at += text[from] === "u" ? 5 : 1
  while (at < end && /[._~-]/.test(text[at]!)) at++
  return at - from
}

function withoutSeparators(text: string, end: number): number {
  let stop = end
  while (/[._~-]/.test(text[stop - 1]!)) stop--
  return stop
}

/** Matches a prefix of one to three words, each in one case and followed by a separator. */
const PREFIX = /^(?:(?:[a-z]{1,12}\d{0,2}|[A-Z]{1,12}\d{0,2}|[a-z][a-z0-9]{1,5})[_.-]){1,3}/
/** Matches prefixes of ids, hashes and public keys. */
const ID_PREFIX =
  /(?:^|[_.-])(?:(?:srv)?toolu|msg|req|call|chatcmpl|resp|rs|fc|ws|ig|ci|run|thread|asst|file|batch|ftjob|evt|cus|sub|price|prod|acct|pm|cs|seti|user|usr|org|team|client|sess?|session|prj|dpl|ins|prt|env|agent|trace|span|id|uid|uuid|pk|pub|public|sha|md|blake|hash|digest|etag|rev|commit|blob|node|build|chunk|h|integrity|v)\d{0,3}[_.-]/i
/** Matches prefixes that are also written before hashes. */
const HASH_PREFIX =
  /^(?:tree|pack|layer|image|container|docker|volume|snapshot|backup|cache|tmp|temp|test|cover|diff)_$/
/**
 * The minimum length of a random part. It is at least as long as the longest common id of a service, a KSUID, which has 27
 * characters.
 */
const MIN_BODY_LENGTH = 27
/** Matches a long sequence without separators. Versions, dates and names consist of shorter ones. */
const LONG_SEQUENCE = /[A-Za-z0-9]{14}/
/**
 * Matches a random part without capitals. A hash would also match, but only prefixes that HASH_PREFIX matches are written before
 * hashes.
 */
const LOWER_CASE_BODY = /^(?:[0-9a-f]{40}|[0-9a-f]{48}|[0-9a-f]{64}|[a-z0-9]{32,64})$/
const PATH = /\/[a-z]{3,}(?:\/|$)|\.[a-z]{2,4}(?:\/|$)/

function isRandomBody(prefix: string, body: string): boolean {
  const trimmedBody = body.replace(/[._~-]+$/, "")
  if (isMixedRandom(trimmedBody, MIN_BODY_LENGTH) && LONG_SEQUENCE.test(trimmedBody)) return true
  if (!LOWER_CASE_BODY.test(trimmedBody) || !/^[a-z]{3,12}_$/.test(prefix) || HASH_PREFIX.test(prefix)) return false
  return /\d/.test(trimmedBody) && looksRandom(trimmedBody, 32, 0.35)
}

/** Matches a word that indicates that a secret follows. */
const SECRET_WORD =
  /(^|[_.-])(sk|rk|ak|tk|tok|key|apikey|api|token|secret|sec|pat|pwd|auth|access|refresh|live|prod|private)[_.-](?=[A-Za-z0-9]{16}|[0-9a-f]{8}-[0-9a-f]{4}-)/i
/** Words that also precede hashes and occur in the names of machines. */
const VAGUE_WORDS = new Set(["key", "api", "auth", "access", "refresh", "prod", "private"])
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])/

function indicatesSecret(word: string, body: string): boolean {
  const piece = /^[A-Za-z0-9]+/.exec(body)?.[0] ?? ""
  if (isMixedRandom(piece, 16)) return true
  if (UUID.test(body)) return word !== "live" && word !== "prod" && word !== "auth" && word !== "access"
  return !VAGUE_WORDS.has(word) && /^(?:[0-9a-f]{24,}|[a-z0-9]{20,})$/.test(piece) && looksRandom(piece, 20, 0.35)
}

/** Whether lower-case letters, capitals and digits are mixed as only a generator mixes them. */
export function isMixedRandom(value: string, minLength: number): boolean {
  return (
    countKindChanges(value) >= Math.min(value.length, 128) * 0.32 &&
    looksRandom(value, minLength) &&
    MIXED_CASE.test(value)
  )
}

const MIXED_CASE = /(?=(?:[^a-z]*[a-z]){3})(?=(?:[^A-Z]*[A-Z]){3})/
