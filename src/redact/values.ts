// Decides whether a value in the position of a secret is a secret: random text, or a password that a person chose. Placeholders,
// references to variables, paths and pieces of code are not.

/** For each letter, the letters that may follow it. They cover 97 % of the letter pairs in English words and identifiers. */
const COMMON_PAIRS =
  "a:abcdefgiklmnprstuvwxy b:abcdefijlorsuy c:acdefhiklmoprstuy d:abcdefgilnorstuy e:abcdefgilmnopqrstuvwxy " +
  "f:abcdefilmorstuy g:aeghilmnoprstu h:aeilmorstuy i:abcdefgklmnoprstvxz j:aeosu k:aeips l:abcdefilopstuvy " +
  "m:abdeilmopstu n:acdefgiklmnopstuvy o:abcdefgiklmnoprstuvwx p:acdehikloprstuy q:u r:abcdefgiklmnoprstuvy " +
  "s:acdefhiklmnopqrstuvwy t:abcdefhilmnoprstuwy u:abcdefgilmnoprst v:acegio w:aehinors x:aceipt y:eilmnopst z:ei"

const isCommonPair = new Uint8Array(26 * 26)
for (const row of COMMON_PAIRS.split(" ")) {
  for (const second of row.slice(2)) isCommonPair[(row.charCodeAt(0) - 97) * 26 + second.charCodeAt(0) - 97] = 1
}

/** The maximum number of characters of a value to judge. */
const MAX_JUDGED_CHARS = 128

/**
 * Whether a text looks generated: many different characters, letter pairs that are rare in words, digits between letters.
 * Identifiers, paths, sentences, versions and counting sequences are not random.
 */
export function looksRandom(value: string, minLength: number, oddShare = 0.28): boolean {
  const length = Math.min(value.length, MAX_JUDGED_CHARS)
  if (length < minLength) return false
  const counts = new Uint16Array(128)
  let oddPairs = 0
  let commonPairs = 0
  let ascending = 0
  let letters = 0
  let previous = 0
  let previousKind = OTHER
  for (let i = 0; i < length; i++) {
    const code = value.charCodeAt(i)
    if (code < 128) counts[code]!++
    const kind = code < 128 ? KINDS[code]! : OTHER
    if (kind >= LOWER) letters++
    if (code === previous + 1) ascending++
    if (kind >= LOWER && previousKind >= LOWER) {
      if (previousKind === LOWER && kind === UPPER) commonPairs += 0.5
      else if (isCommonPair[((previous | 32) - 97) * 26 + (code | 32) - 97] === 1) commonPairs++
      else oddPairs++
    } else if (kind !== previousKind && kind !== OTHER && previousKind !== OTHER) oddPairs += 0.5
    previous = code
    previousKind = kind
  }
  if (letters === 0 || ascending > length * 0.3) return false
  if (entropy(counts, length) < (length < 20 ? 2.9 : 3.1)) return false
  return oddPairs >= 2 && oddPairs / (oddPairs + commonPairs) >= oddShare
}

const OTHER = 0
const DIGIT = 1
/** The code for punctuation that does not occur between letters in code, paths or words. */
const SYMBOL = 2
const LOWER = 3
const UPPER = 4

const KINDS = Uint8Array.from({ length: 128 }, (_, code) => {
  const c = String.fromCharCode(code)
  if (/[a-z]/.test(c)) return LOWER
  if (/[A-Z]/.test(c)) return UPPER
  if (/\d/.test(c)) return DIGIT
  return /[!#$%&*+@^]/.test(c) ? SYMBOL : OTHER
})

/** The entropy in bits per character. Each character beyond ASCII counts as a different one. */
function entropy(counts: Uint16Array, length: number): number {
  let bits = 0
  let counted = 0
  for (const count of counts) {
    if (count === 0) continue
    counted += count
    bits -= (count / length) * Math.log2(count / length)
  }
  return bits + ((length - counted) / length) * Math.log2(length)
}

/** Returns false for texts such as `xxxxxxxx` or `0000…`, with which people illustrate the form of a token. */
export function hasManyCharacters(value: string): boolean {
  const minDistinct = Math.min(8, value.length / 3)
  const length = Math.min(value.length, MAX_JUDGED_CHARS)
  const seen = new Uint8Array(128)
  let distinctCount = 0
  for (let i = 0; i < length && distinctCount < minDistinct; i++) {
    const code = value.charCodeAt(i) & 127
    if (seen[code] === 0) distinctCount++
    seen[code] = 1
  }
  return distinctCount >= minDistinct
}

const PLACEHOLDER =
  /x{4}|\*{3}|\.{3}|…|^[<[{(].*[>\]})]$|\$[{(]|^\$[A-Za-z_]\w*$|^%\w+%$|\{\{|<[a-z]|example|placeholder|change.?(?:me|this)|your[-_. ]?(?!s)|dummy|fake|sample|replace.?(?:me|with|this)|redacted|insert.?(?:your|here)|not.?a.?real|process\.env|environ|getenv|secrets?\.|var\.|vault:|op:\/\/|ssm:|\barn:|keyring|todo\b/i
const PLACEHOLDER_WORDS =
  /^(?:null|none|nil|undefined|true|false|string|str|text|number|boolean|bool|bytes|object|any|password|passwd|secret|token|required|optional|unknown|empty|default|hidden|masked|invalid|disabled|enabled|bearer|basic|inherit|auto|prompt|stdin|env|file|value|n\/a|\d+)$/i

/** Matches a reference to a shell variable. */
const REFERENCE = /\$[A-Z_]{2}/

export function isPlaceholder(value: string): boolean {
  return (
    value.length === 0 ||
    REFERENCE.test(value) ||
    PLACEHOLDER_WORDS.test(value) ||
    PLACEHOLDER.test(value) ||
    !hasManyCharacters(value)
  )
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const CODE =
  /[(){}[\]<>;|]|=>|::|->|\w\.\w+\.\w|^\.{0,2}\/(?:[\w.-]+\/){2}|^[.~]|^[a-z][a-z0-9+.-]*:\/\/|^[A-Za-z]:[\\/]|\.[a-z]{2,4}$|^(?:sha\d+-|data:)/

/** Whether a value was generated, such as an API key, a token or a session id. A quoted value may contain any symbols. */
export function isGenerated(value: string, quoted = false): boolean {
  if (!hasManyCharacters(value)) return false
  if (UUID.test(value)) return !isPlaceholder(value)
  if (!looksRandom(value, 16) && !isWellMixed(value)) return false
  if (/\s/.test(value) || isPlaceholder(value)) return false
  return !CODE.test(value) || BASE64.test(value) || (quoted && hasScatteredSymbols(value))
}

/** Complete groups of base64, which can begin like a path. */
const BASE64 = /^[A-Za-z0-9+/]{40,}={1,2}$/

/** Whether cases and digits are well mixed. In a random value, letters may form common pairs by chance. */
function isWellMixed(value: string): boolean {
  return looksRandom(value, 16, 0.12) && countKindChanges(value) >= Math.min(value.length, MAX_JUDGED_CHARS) * 0.45
}

/** Counts how often the kind of character changes. Returns 0 unless lower-case letters, capitals and digits all occur. */
export function countKindChanges(value: string): number {
  let previousKind = OTHER
  let changes = 0
  let seenKinds = 0
  for (let i = 0; i < Math.min(value.length, MAX_JUDGED_CHARS); i++) {
    const kind = KINDS[value.charCodeAt(i)] ?? OTHER
    seenKinds |= 1 << kind
    if (kind !== previousKind) changes++
    previousKind = kind
  }
  const allKinds = (1 << DIGIT) | (1 << LOWER) | (1 << UPPER)
  return (seenKinds & allKinds) === allKinds ? changes : 0
}

/** Whether this looks like a key that Django generated: long, with at least three digits and two symbols. */
function hasScatteredSymbols(value: string): boolean {
  return (
    value.length >= 32 &&
    value.length <= 100 &&
    (value.match(/\d/g)?.length ?? 0) >= 3 &&
    /[!@#$%^&*=+].*[!@#$%^&*=+]/.test(value)
  )
}

const PASSWORD_WORDS =
  /(?:pass(?:word|wd|code|phrase)?|p[a4@][s5$]{2}(?:w[o0]rd)?|pwd?|secret|token|key|test(?:ing|er)?|admin|root|user(?:name)?|guest|demo|foo|bar|baz|qux|abc|qwerty|my|new|old|the|some|super|strong|very|wrong|correct|bad|good|valid|invalid|hello|world|login|letmein|db|database|postgres|mysql|redis|mongo|rabbitmq|minio|local|dev|prod|ci|api|app|temp|tmp|initial|default|safe|is|a|an|with|for|in|and)|\d{1,4}|[-_.!@#$%^&*+=:?~ ]/gi

const MAX_PASSWORD_LENGTH = 128

/** Whether letters change between lower case and capitals more often than in any name made of words. */
function hasScatteredCase(value: string): boolean {
  if (value.length < 10 || !/^[A-Za-z]+$/.test(value)) return false
  let changes = 0
  for (let i = 1; i < value.length; i++) if ((value.charCodeAt(i) ^ value.charCodeAt(i - 1)) & 32) changes++
  return changes >= value.length * 0.45
}

/**
 * Whether a person may have chosen this password. `isCertain` is true if only a password can be in this position (an environment
 * variable, its own field); elsewhere, as in code, it must not read like a name.
 */
export function isPassword(value: string, isCertain: boolean): boolean {
  if (value.length > MAX_PASSWORD_LENGTH) return isGenerated(value)
  if (value.length < (isCertain ? 6 : 8) || /\s/.test(value)) return false
  if (UUID.test(value)) return isCertain
  if (isPlaceholder(value) || value.replace(PASSWORD_WORDS, "") === "") return false
  if (looksRandom(value, 10)) return !CODE.test(value) || isCertain
  if (/^[\w$]+(?:\.[\w$]+)+$|^[./~]|^\w+\(|^[a-z]+:\/\/|^[^\w]*$|\\|^\w+\[|\?\.|=>|&&|\|\|/i.test(value)) return false
  const hasLetters = /[A-Za-z]/.test(value)
  const hasDigits = /\d/.test(value)
  const hasSymbols = /[!@#$%^&*+=?~]/.test(value)
  if (!hasLetters) return hasDigits && value.length >= 10 && isCertain
  if (hasScatteredCase(value)) return true
  if (isCertain) return hasDigits || hasSymbols || value.length >= 14
  return (hasDigits && hasSymbols) || (hasDigits && !/^[A-Za-z]+_?\d{1,2}$|^[a-z]+(?:[-_][a-z0-9]+)+$/i.test(value))
}
