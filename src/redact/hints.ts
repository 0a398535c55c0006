import { encodeInteger, openWasm, type WasmFunction } from "../core/wasm.ts"

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
  if (text.length < MIN_WASM_LENGTH) return hintsInJavaScript(text)
  if (scanner === undefined) scanner = openScanner() ?? null
  return scanner ? hintsInWasm(text, scanner) : hintsInJavaScript(text)
}

type Found = { bits: number; names: number[]; slashes: number[]; flags: number[] }

const nothingFound = (): Found => {
  const none = NO_POSITIONS as number[]
  return { bits: 0, names: none, slashes: none, flags: none }
}

/** The same as `hintsOf`, without WebAssembly: for short texts, and if there is none. */
export function hintsInJavaScript(text: string): Hints {
  const found = nothingFound()
  let bits = 0
  let lastThree = 0
  const length = text.length
  for (let i = 0; i < length; i++) {
    const kind = CHARACTER_CODES[text.charCodeAt(i)]!
    bits |= kind
    lastThree = ((lastThree << 5) | (kind & 31)) & 0x7fff
    const meaning = MEANINGS[lastThree]!
    if (meaning !== 0) addHit(text, i, meaning, found)
  }
  return hintsFrom(found, bits)
}

function hintsFrom({ names, slashes, flags, bits }: Found, moreBits: number): Hints {
  return names === NO_POSITIONS && slashes === NO_POSITIONS && flags === NO_POSITIONS
    ? HINTS_WITHOUT_POSITIONS[(bits | moreBits) >> 5]!
    : toHints(bits | moreBits, names, slashes, flags)
}

/** Adds what the three characters that end at `i` mean. */
function addHit(text: string, i: number, meaning: number, found: Found): void {
  if (meaning >= NAME) {
    if (isNameStart(text, i + 1, nameStarts[meaning - NAME]!)) found.names = withPosition(found.names, i - 2)
  } else if (meaning === SPACED_SLASH) found.slashes = withPosition(found.slashes, i - 1)
  else if (meaning === PRIVATE) found.bits |= PRIVATE_BIT
  else if (meaning === ADDRESS) found.bits |= ADDRESS_BIT
  else if (meaning === KEY_TYPE) found.bits |= /["'\\]/.test(text[i + 1] ?? "") ? KEY_TYPE_BIT : 0
  else if (meaning === PORT) found.bits |= isPort(text, i - 1) ? PORT_BIT : 0
  else if (meaning === ESCAPE) found.bits |= isLetterEscape(text, i) ? ESCAPE_BIT : 0
  else if (isCommandHint(meaning, text, i + 1)) found.flags = withPosition(found.flags, i - 2)
}

function withPosition(positions: number[], position: number): number[] {
  if (positions === NO_POSITIONS) return [position]
  positions.push(position)
  return positions
}

// The loop of `hintsInJavaScript` in WebAssembly. V8 compiles the one in JavaScript up to five times during a sync, which took
// more time than it ran.

/** Shorter texts are not worth copying. */
const MIN_WASM_LENGTH = 128
/** Longer texts are scanned in chunks of this many characters. */
const CHUNK_LENGTH = 1 << 15

// The memory: CHARACTER_CODES, MEANINGS, a chunk of the text, the end of the hits and the last three characters, the hits.
const MEANINGS_AT = 1 << 17
const TEXT_AT = MEANINGS_AT + (1 << 15)
const STATE_AT = TEXT_AT + 2 * CHUNK_LENGTH
const HITS_AT = STATE_AT + 8
const PAGES = Math.ceil((HITS_AT + 4 * CHUNK_LENGTH) / (1 << 16))
/** A hit is a position in the chunk and, in its lower bits, a meaning. */
const MEANING_SIZE = 6

type Scanner = {
  scan: (length: number, lastThree: number) => number
  text: Buffer
  state: Uint32Array
  hits: Uint32Array
}
/** Null if there is no WebAssembly. */
let scanner: Scanner | null | undefined

function openScanner(): Scanner | undefined {
  const opened = openWasm<Scanner["scan"]>(SCAN, PAGES)
  if (!opened) return undefined
  const { buffer } = opened.memory
  new Uint16Array(buffer).set(CHARACTER_CODES)
  new Uint8Array(buffer, MEANINGS_AT).set(MEANINGS)
  return {
    scan: opened.run,
    text: Buffer.from(buffer, TEXT_AT, 2 * CHUNK_LENGTH),
    state: new Uint32Array(buffer, STATE_AT, 2),
    hits: new Uint32Array(buffer, HITS_AT),
  }
}

function hintsInWasm(text: string, { scan, text: chunk, state, hits }: Scanner): Hints {
  const found = nothingFound()
  let bits = 0
  let lastThree = 0
  for (let from = 0; from < text.length; from += CHUNK_LENGTH) {
    const isWhole = from === 0 && text.length <= CHUNK_LENGTH
    const length = chunk.write(isWhole ? text : text.slice(from, from + CHUNK_LENGTH), "utf16le") / 2
    bits |= scan(length, lastThree)
    lastThree = state[1]!
    const count = (state[0]! - HITS_AT) / 4
    for (let i = 0; i < count; i++) {
      const hit = hits[i]!
      addHit(text, from + (hit >>> MEANING_SIZE), hit & ((1 << MEANING_SIZE) - 1), found)
    }
  }
  return hintsFrom(found, bits)
}

const SCAN = ((): WasmFunction => {
  const [LENGTH, LAST_THREE, AT, END, HIT, BITS, CODE, MEANING] = [0, 1, 2, 3, 4, 5, 6, 7]
  const get = (local: number) => [0x20, local]
  const set = (local: number) => [0x21, local]
  const tee = (local: number) => [0x22, local]
  const integer = (value: number) => [0x41, ...encodeInteger(value)]
  const [ADD, SUBTRACT, AND, OR, SHIFT_LEFT] = [0x6a, 0x6b, 0x71, 0x72, 0x74]
  const load8 = (offset: number) => [0x2d, 0, ...encodeInteger(offset)]
  const load16 = (offset: number) => [0x2f, 1, ...encodeInteger(offset)]
  const store32 = (offset: number) => [0x36, 2, ...encodeInteger(offset)]
  const code = [
    ...[...integer(TEXT_AT), ...tee(AT), ...get(LENGTH), ...integer(1), SHIFT_LEFT, ADD, ...set(END)],
    ...[...integer(HITS_AT), ...set(HIT)],
    ...[0x02, 0x40, 0x03, 0x40], // block, loop: each character
    ...[...get(AT), ...get(END), 0x4f, 0x0d, 1], // past the end: leave the block
    ...[
      ...get(AT),
      ...load16(0),
      ...integer(1),
      SHIFT_LEFT,
      ...load16(0),
      ...tee(CODE),
      ...get(BITS),
      OR,
      ...set(BITS),
    ],
    ...[...get(LAST_THREE), ...integer(5), SHIFT_LEFT, ...get(CODE), ...integer(31), AND, OR],
    ...[...integer(0x7fff), AND, ...tee(LAST_THREE), ...load8(MEANINGS_AT), ...tee(MEANING)],
    ...[0x04, 0x40], // if there is a meaning
    ...[...get(HIT), ...get(AT), ...integer(TEXT_AT), SUBTRACT, ...integer(MEANING_SIZE - 1), SHIFT_LEFT],
    ...[...get(MEANING), OR, ...store32(0)],
    ...[...get(HIT), ...integer(4), ADD, ...set(HIT), 0x0b],
    ...[...get(AT), ...integer(2), ADD, ...set(AT), 0x0c, 0, 0x0b, 0x0b],
    ...[...integer(STATE_AT), ...get(HIT), ...store32(0), ...integer(STATE_AT), ...get(LAST_THREE), ...store32(4)],
    ...get(BITS),
  ]
  return { parameters: 2, returnsInteger: true, locals: [1, 6, 0x7f], code }
})()

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
