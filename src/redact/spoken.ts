import type { Span } from "./rules.ts"
import { isPassword } from "./values.ts"

// Finds passwords in sentences: in other languages, next to a user's name, or as the words of a wallet.

/** German, French, Spanish and Portuguese names for a password that do not begin like the English ones. */
export const LATIN_WORDS = "kennwort|contrase(?:\u00f1|n)as?|\\bmdp\\b|\\bclave\\b|\\bsenha\\b"
const LATIN_NAME = new RegExp(`^(?:${LATIN_WORDS})`, "i")

/** Finds the password after its name in one of the languages of `LATIN_WORDS`. */
export function findLatinPassword(text: string, hit: RegExpExecArray): Span | undefined {
  return LATIN_NAME.test(hit[0]) || isMotDePasse(text, hit) ? passwordAt(text, hit.index + hit[0].length) : undefined
}

function isMotDePasse(text: string, hit: RegExpExecArray): boolean {
  return /^passe\b/i.test(hit[0]) && /mots?[ _-]?de[ _-]?$/i.test(text.slice(Math.max(0, hit.index - 9), hit.index))
}

/** Matches Russian, Chinese, Japanese and Korean names for a password, with the separator before the value, if there is one. */
const NON_LATIN_NAME =
  /(?:парол[ья](?:[^\S\n][а-яё]{1,12}){0,3}(?=[^\S\n]{0,3}[:：=—–-])|пароль|пароля|密码|密碼|口令|パスワード|パスフレーズ|暗証番号|비밀번호|암호)[^\S\n]{0,3}(?:[:：=＝]|是|为|為|は|이|는|это|[-–—](?=\s))?/gi

/** Finds the passwords after non-Latin names. Call this only for texts with characters of other scripts. */
export function findWidePasswords(text: string, spans: Span[]): void {
  NON_LATIN_NAME.lastIndex = 0
  for (let hit = NON_LATIN_NAME.exec(text); hit; hit = NON_LATIN_NAME.exec(text)) {
    const span = passwordAt(text, NON_LATIN_NAME.lastIndex)
    if (span) spans.push(span)
  }
}

const PASSWORD_VALUE = /[^\S\n]{0,4}[«"'`“”„「『:：]{0,2}[^\S\n]?([!#-&(-[\]-_a-~]{6,128})/y

function passwordAt(text: string, at: number): Span | undefined {
  PASSWORD_VALUE.lastIndex = at
  const match = PASSWORD_VALUE.exec(text)
  if (!match) return undefined
  const value = match[1]!.replace(/[.,;:!?)\]}]+$/, "")
  if (value.includes("[REDACTED") || /[({[<=]/.test(value) || !isPassword(value, false)) return undefined
  const start = PASSWORD_VALUE.lastIndex - match[1]!.length
  return { start, end: start + value.length, rule: "password" }
}

/** Matches a login such as "log in as admin". A slash and the password follow. */
const LOGIN =
  /(?:(?:log|sign)(?:ged|ed)?[ -]?in|credentials?|creds|account|user(?:name)?|admin)(?:[ \t:]{1,3}(?:is|are|as|with|using|to|:))?[ \t:]{1,3}[`"']?[\w.@+-]{2,64}[`"']?$/i

/** Finds the passwords after the slashes at these positions, which come from `hintsOf`. */
export function findLogins(text: string, slashes: readonly number[], spans: Span[]): void {
  for (const slash of slashes) {
    PASSWORD_VALUE.lastIndex = slash + 1
    const match = PASSWORD_VALUE.exec(text)
    const value = match?.[1]?.replace(/[.,;:)\]}]+$/, "") ?? ""
    const isStrong = /[A-Za-z]/.test(value) && /\d/.test(value) && /[!@#$%^&*?+]/.test(value)
    if (!match || !isStrong || /[/=({[<]/.test(value) || !isPassword(value, false)) continue
    if (!LOGIN.test(text.slice(Math.max(0, slash - 101), slash - 1))) continue
    const start = PASSWORD_VALUE.lastIndex - match[1]!.length
    spans.push({ start, end: start + value.length, rule: "password" })
  }
}

export const SEED_WORDS = "mnemonic|(?:seed|recovery|backup)[ _-]?(?:phrase|words?)"
const SEED_NAME = new RegExp(`^(?:${SEED_WORDS})`, "i")
/** Matches a seed phrase of a wallet: 12 to 24 words of three to eight letters, possibly numbered or on separate lines. */
const SEED_PHRASE =
  /[\s"'`[\\n]{0,8}((?:(?:\d{1,2}[.):]?[ ]?)?[a-z]{3,8}(?:["']?,? {1,3}|["']?,?\s{0,2}\n\s{0,4})["']?){11,23}(?:\d{1,2}[.):]?[ ]?)?[a-z]{3,8})(?![a-z])/y

/** Finds a wallet's seed phrase after its name. */
export function findSeedPhrase(text: string, hit: RegExpExecArray): Span | undefined {
  if (!SEED_NAME.test(hit[0])) return undefined
  SEED_PHRASE.lastIndex = hit.index + hit[0].length
  const match = SEED_PHRASE.exec(text)
  return match
    ? { start: SEED_PHRASE.lastIndex - match[1]!.length, end: SEED_PHRASE.lastIndex, rule: "secret" }
    : undefined
}
