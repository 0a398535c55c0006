// Which scanners must look at a text, and where names begin in it: one pass over its characters, three at a time. A regex
// for each question would read the text again and take three times as long together.

export type Hints = {
  /** Where a word begins that may name a secret. */
  names: readonly number[]
  /** Where a slash stands between spaces. */
  slashes: readonly number[]
  privates: boolean
  addresses: boolean
  shortFlags: boolean
  ampersands: boolean
  percents: boolean
  /** There may be colours whose escape character is gone. */
  brackets: boolean
  /** Something beyond Latin letters and common signs: hidden characters, escapes, or another script. */
  wide: boolean
}

/** How a secret's name begins, in small letters. `redact-assignments.ts` and `redact-spoken.ts` read on from there. */
const NAME_STARTS =
  "pass pwd secret token key cred auth cookie jwt bearer basic kennwort contrase mdp clave senha mnemonic seed recovery backup"

// Five bits for a character that matters, the others for what its presence says.
const SPACE = 27
const SLASH = 28
const HYPHEN = 29
const COLON = 30
const BACKSLASH = 31
const WIDE_BIT = 32
const BRACKET_BIT = 64
const AMPERSAND_BIT = 128
const PERCENT_BIT = 256

const KIND = new Uint16Array(1 << 16)
for (let letter = 1; letter <= 26; letter++) KIND[64 + letter] = KIND[96 + letter] = letter
for (const [sign, kind] of Object.entries({ " ": SPACE, "/": SLASH, "-": HYPHEN, ":": COLON, "\\": BACKSLASH })) {
  KIND[sign.charCodeAt(0)] = kind
}
KIND["[".charCodeAt(0)] = BRACKET_BIT
KIND["&".charCodeAt(0)] = AMPERSAND_BIT
KIND["%".charCodeAt(0)] = PERCENT_BIT
for (const code of [0x08, 0x1b, 0x9b, 0xad]) KIND[code] = WIDE_BIT
for (const [from, to] of [
  [0x300, 0x200f],
  [0x202a, 0x2070],
  [0x3000, 0xd7ff],
  [0xdb40, 0xdb40],
  [0xe000, 0xffff],
] as const) {
  KIND.fill(WIDE_BIT, from, to + 1)
}

const NAME = 1
const SPACED_SLASH = 2
const PRIVATE = 3
const ADDRESS = 4
const SHORT_FLAG = 5
const LONG_FLAG = 6

/** Indexed by three characters of five bits each: what they may be the beginning of. */
const MEANING = new Uint8Array(1 << 15)
const starts = new Map<number, string[]>()
for (const start of NAME_STARTS.split(" ")) {
  const three = code3(start)
  MEANING[three] = NAME
  starts.set(three, [...(starts.get(three) ?? []), start])
}
MEANING[code3(" / ")] = SPACED_SLASH
MEANING[code3("vat")] = PRIVATE
MEANING[code3("://")] = ADDRESS
for (let any = 0; any < 32; any++) MEANING[(COLON << 10) | (BACKSLASH << 5) | any] = ADDRESS
for (const flag of [" -u", " -p", " -a"]) MEANING[code3(flag)] = SHORT_FLAG
MEANING[code3(" --")] = LONG_FLAG

function code3(three: string): number {
  return [0, 1, 2].reduce((code, i) => (code << 5) | (KIND[three.charCodeAt(i)]! & 31), 0)
}

const NONE: readonly number[] = []

const PRIVATE_BIT = 512
const ADDRESS_BIT = 1024
const SHORT_FLAG_BIT = 2048

/** For texts without names: most are, and none of them needs an answer of its own. */
const NAMELESS = Array.from({ length: 1 << 7 }, (_, bits) => toHints(bits << 5, NONE, NONE))

function toHints(seen: number, names: readonly number[], slashes: readonly number[]): Hints {
  return {
    names,
    slashes,
    privates: (seen & PRIVATE_BIT) !== 0,
    addresses: (seen & ADDRESS_BIT) !== 0,
    shortFlags: (seen & SHORT_FLAG_BIT) !== 0,
    ampersands: (seen & AMPERSAND_BIT) !== 0,
    percents: (seen & PERCENT_BIT) !== 0,
    brackets: (seen & BRACKET_BIT) !== 0,
    wide: (seen & WIDE_BIT) !== 0,
  }
}

export function hintsOf(text: string): Hints {
  let names = NONE as number[]
  let slashes = NONE as number[]
  let seen = 0
  let three = 0
  const length = text.length
  for (let i = 0; i < length; i++) {
    const kind = KIND[text.charCodeAt(i)]!
    seen |= kind
    three = ((three << 5) | (kind & 31)) & 0x7fff
    const meaning = MEANING[three]!
    if (meaning === 0) continue
    if (meaning === NAME) {
      if (!isNameStart(text, i + 1, starts.get(three)!)) continue
      if (names === NONE) names = []
      names.push(i - 2)
    } else if (meaning === SPACED_SLASH) {
      if (slashes === NONE) slashes = []
      slashes.push(i - 1)
    } else if (meaning === PRIVATE) seen |= PRIVATE_BIT
    else if (meaning === ADDRESS) seen |= ADDRESS_BIT
    else if (meaning === SHORT_FLAG || isUserFlag(text, i + 1)) seen |= SHORT_FLAG_BIT
  }
  return names === NONE && slashes === NONE ? NAMELESS[seen >> 5]! : toHints(seen, names, slashes)
}

/** Whether one of the words goes on behind its first three letters. */
function isNameStart(text: string, from: number, words: string[]): boolean {
  for (const word of words) {
    let i = 3
    while (i < word.length && (text.charCodeAt(from + i - 3) | 32) === word.charCodeAt(i)) i++
    if (i === word.length) return true
  }
  return false
}

/** `--user` or `--proxy-user`. */
function isUserFlag(text: string, at: number): boolean {
  return text.startsWith("user", at) || text.startsWith("proxy-user", at)
}
