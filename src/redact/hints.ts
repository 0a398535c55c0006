// Decides which scanners must check a text, and finds where names begin in it, in one pass over its characters, three at a time.
// Separate regexes would read the text repeatedly and take three times as long in total.

export type Hints = {
  /** The positions of words that may name a secret. */
  names: readonly number[]
  /** The positions of slashes that have a space on both sides. */
  slashes: readonly number[]
  /** True if there may be private text or a private key. */
  mayContainPrivateText: boolean
  /** True if there may be a URL. */
  mayContainUrl: boolean
  /** The positions of the spaces before flags that may contain a password, and of commands that read a password. */
  flags: readonly number[]
  hasAmpersand: boolean
  hasPercentSign: boolean
  /** True if there may be colours without their escape character. */
  mayContainColour: boolean
  /** True if there may be a JSON Web Key. */
  mayContainJwk: boolean
  /** True if there may be a line in the format of .pgpass. */
  mayContainPgpass: boolean
  /** True if a letter may be written as an escape. */
  mayContainEscape: boolean
  /** True if there are characters beyond Latin letters and common symbols: hidden characters, escapes, or another script. */
  hasWideCharacters: boolean
}

/** The beginnings of secrets' names, in lower case. `assignments.ts` and `spoken.ts` check the text after them. */
const NAME_STARTS =
  "pass|pwd|psk|secret|securestring|token|key|cred|crumb|auth|cookie|jwt|bearer|basic|kennwort|contrase|mdp|clave|senha|mnemonic|seed|recovery|backup|login(|ied by "

// The code of a relevant character uses five bits. The higher bits record which characters occurred anywhere in the text.
const SPACE = 27
const SLASH = 28
const HYPHEN = 29
const COLON = 30
const BACKSLASH = 31
const WIDE_BIT = 32
const BRACKET_BIT = 64
const AMPERSAND_BIT = 128
const PERCENT_BIT = 256

const CHARACTER_CODES = new Uint16Array(1 << 16)
for (let letter = 1; letter <= 26; letter++) CHARACTER_CODES[64 + letter] = CHARACTER_CODES[96 + letter] = letter
for (const [character, kind] of Object.entries({ " ": SPACE, "/": SLASH, "-": HYPHEN, ":": COLON, "\\": BACKSLASH })) {
  CHARACTER_CODES[character.charCodeAt(0)] = kind
}
CHARACTER_CODES["[".charCodeAt(0)] = BRACKET_BIT
CHARACTER_CODES["&".charCodeAt(0)] = AMPERSAND_BIT
CHARACTER_CODES["%".charCodeAt(0)] = PERCENT_BIT
for (const code of [0x08, 0x1b, 0x9b, 0xad]) CHARACTER_CODES[code] = WIDE_BIT
for (const [from, to] of [
  [0x300, 0x200f],
  [0x202a, 0x2070],
  [0x3000, 0xd7ff],
  [0xdb40, 0xdb40],
  [0xe000, 0xffff],
] as const) {
  CHARACTER_CODES.fill(WIDE_BIT, from, to + 1)
}

const SPACED_SLASH = 1
const PRIVATE = 2
const ADDRESS = 3
const SHORT_FLAG = 4
const LONG_FLAG = 5
const COMMAND = 6
const COOKIE_FLAG = 7
const KEY_TYPE = 8
const PORT = 9
const ESCAPE = 10
/** The first of the meanings that stand for names. A meaning minus `NAME` is the index of its names in `nameStarts`. */
const NAME = 11

/** Maps the codes of three characters to the meaning of the text that they may begin. */
const MEANINGS = new Uint8Array(1 << 15)
const nameStarts: string[][] = []
for (const start of NAME_STARTS.split("|")) {
  const code = code3(start)
  if (MEANINGS[code] === 0) MEANINGS[code] = NAME + nameStarts.push([]) - 1
  nameStarts[MEANINGS[code]! - NAME]!.push(start)
}
MEANINGS[code3(" / ")] = SPACED_SLASH
for (const beginning of ["vat", "vpn"]) MEANINGS[code3(beginning)] = PRIVATE
MEANINGS[code3("://")] = ADDRESS
for (let third = 0; third < 32; third++) MEANINGS[(COLON << 10) | (BACKSLASH << 5) | third] = ADDRESS
for (const flag of [" -u", " -p", " -a", " -w"]) MEANINGS[code3(flag)] = SHORT_FLAG
MEANINGS[code3(" --")] = LONG_FLAG
MEANINGS[code3(" -b")] = COOKIE_FLAG
MEANINGS[code3("sud")] = COMMAND
MEANINGS[code3("kty")] = KEY_TYPE
MEANINGS[COLON << 10] = PORT
MEANINGS[code3("\\u0")] = ESCAPE

function code3(characters: string): number {
  return [0, 1, 2].reduce((code, i) => (code << 5) | (CHARACTER_CODES[characters.charCodeAt(i)]! & 31), 0)
}

const NO_POSITIONS: readonly number[] = []

const PRIVATE_BIT = 512
const ADDRESS_BIT = 1024
const KEY_TYPE_BIT = 2048
const PORT_BIT = 4096
const ESCAPE_BIT = 8192

/** Shared results for texts without names, slashes or flags. Most texts have none. */
const HINTS_WITHOUT_POSITIONS = Array.from({ length: 1 << 9 }, (_, bits) =>
  toHints(bits << 5, NO_POSITIONS, NO_POSITIONS, NO_POSITIONS),
)

function toHints(bits: number, names: readonly number[], slashes: readonly number[], flags: readonly number[]): Hints {
  return {
    names,
    slashes,
    flags,
    mayContainPrivateText: (bits & PRIVATE_BIT) !== 0,
    mayContainUrl: (bits & ADDRESS_BIT) !== 0,
    hasAmpersand: (bits & AMPERSAND_BIT) !== 0,
    hasPercentSign: (bits & PERCENT_BIT) !== 0,
    mayContainColour: (bits & BRACKET_BIT) !== 0,
    mayContainJwk: (bits & KEY_TYPE_BIT) !== 0,
    mayContainPgpass: (bits & PORT_BIT) !== 0,
    mayContainEscape: (bits & ESCAPE_BIT) !== 0,
    hasWideCharacters: (bits & WIDE_BIT) !== 0,
  }
}

export function hintsOf(text: string): Hints {
  let names = NO_POSITIONS as number[]
  let slashes = NO_POSITIONS as number[]
  let flags = NO_POSITIONS as number[]
  let bits = 0
  let lastThree = 0
  const length = text.length
  for (let i = 0; i < length; i++) {
    const kind = CHARACTER_CODES[text.charCodeAt(i)]!
    bits |= kind
    lastThree = ((lastThree << 5) | (kind & 31)) & 0x7fff
    const meaning = MEANINGS[lastThree]!
    if (meaning === 0) continue
    if (meaning >= NAME) {
      if (!isNameStart(text, i + 1, nameStarts[meaning - NAME]!)) continue
      if (names === NO_POSITIONS) names = []
      names.push(i - 2)
    } else if (meaning === SPACED_SLASH) {
      if (slashes === NO_POSITIONS) slashes = []
      slashes.push(i - 1)
    } else if (meaning === PRIVATE) bits |= PRIVATE_BIT
    else if (meaning === ADDRESS) bits |= ADDRESS_BIT
    else if (meaning === KEY_TYPE) bits |= /["'\\]/.test(text[i + 1] ?? "") ? KEY_TYPE_BIT : 0
    else if (meaning === PORT) bits |= isPort(text, i - 1) ? PORT_BIT : 0
    else if (meaning === ESCAPE) bits |= isLetterEscape(text, i) ? ESCAPE_BIT : 0
    else if (isCommandHint(meaning, text, i + 1)) {
      if (flags === NO_POSITIONS) flags = []
      flags.push(i - 2)
    }
  }
  return names === NO_POSITIONS && slashes === NO_POSITIONS && flags === NO_POSITIONS
    ? HINTS_WITHOUT_POSITIONS[bits >> 5]!
    : toHints(bits, names, slashes, flags)
}

/** Whether one of the words continues at `from`. The caller has already found the first three letters before that position. */
function isNameStart(text: string, from: number, words: string[]): boolean {
  for (const word of words) {
    let i = 3
    while (i < word.length && (text.charCodeAt(from + i - 3) | 32) === word.charCodeAt(i)) i++
    if (i === word.length) return true
  }
  return false
}

function isCommandHint(meaning: number, text: string, at: number): boolean {
  if (meaning === LONG_FLAG) return isUserFlag(text, at)
  if (meaning === COOKIE_FLAG) return COOKIE.test(text.slice(at, at + 40))
  return meaning === SHORT_FLAG || text.startsWith("o -S", at)
}

const COOKIE = /^ ?\\*["']?[\w.-]{3,30}=/

/**
 * Whether this is `5432:database:user:`, as in .pgpass after the host. Most texts that begin like this are a time or a line
 * number.
 */
function isPort(text: string, at: number): boolean {
  if (!isDigit(text.charCodeAt(at)) || !isDigit(text.charCodeAt(at + 3))) return false
  PGPASS.lastIndex = at
  return PGPASS.test(text)
}

const PGPASS = /\d{4,5}:[\w.*-]{1,63}:[\w.*-]{1,63}:[^\s:]/y

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

/** Whether these are the digits of an escaped letter, such as `\u0061`. `at` is the first zero. */
function isLetterEscape(text: string, at: number): boolean {
  return text.startsWith("00", at) && "4567".includes(text[at + 2] ?? " ")
}

/** Whether the flag at this position is `--user` or `--proxy-user`. */
function isUserFlag(text: string, at: number): boolean {
  return text.startsWith("user", at) || text.startsWith("proxy-user", at)
}
