// What a person looks at and what a model reads must be the same text. Signs that nobody sees carry whole sentences past
// the person (tags, selectors), turn words around (bidirectional controls) or steer a terminal (escape sequences).

/**
 * A text as people see it: no control characters, no escape sequences, nothing that hides or reorders. Newlines and tabs
 * stay. So do joiners and selectors where a sign or a word is spelt with them; one at a time, since a run of them is a
 * code. Tags go even from flags: nothing else spells letters that nobody sees.
 */
export function visible(text: string): string {
  return PLAIN.test(text) ? text : withoutHidden(withoutControls(text))
}

/**
 * An answer with every text in it made visible, and how many hidden signs that took out. Controls are not counted. Fields
 * that are undefined are left out, so that a program gets the same fields as a reader of the JSON.
 */
export function visibleIn(output: unknown): { output: unknown; removed: number } {
  let removed = 0
  const clean = (text: string): string => {
    if (PLAIN.test(text)) return text
    const controlled = withoutControls(text)
    const seen = withoutHidden(controlled)
    if (seen.length < controlled.length) removed += [...controlled].length - [...seen].length
    return seen
  }
  const each = (value: unknown): unknown => {
    if (typeof value === "string") return clean(value)
    if (typeof value !== "object" || value === null) return value
    if (Array.isArray(value)) return value.map(each)
    if (isPlain(value)) return value
    const given = Object.entries(value).filter(([, inner]) => inner !== undefined)
    return Object.fromEntries(given.map(([name, inner]) => [clean(name), each(inner)]))
  }
  return { output: each(output), removed }
}

/** Such a row need not be copied. */
function isPlain(row: object): boolean {
  for (const [name, value] of Object.entries(row)) {
    const is = typeof value === "string" ? PLAIN.test(value) : typeof value !== "object" && value !== undefined
    if (!is || !PLAIN.test(name)) return false
  }
  return true
}

const PLAIN = /^[\n\t\x20-\x7e]*$/
const ESCAPED = /\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|[ -~]?)/g

/** Half a sign is marked: some models' servers refuse every later request that holds one. */
function withoutControls(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?|[\u2028\u2029]/g, "\n")
    .replace(ESCAPED, "")
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "")
}

/** With the format characters that are drawn, as the signs over numbers in Arabic, Syriac and Kaithi are. */
const HIDDEN = /[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu
const DRAWN = /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/u

function withoutHidden(text: string): string {
  return text.replace(HIDDEN, (sign, at: number, whole: string) => (isSpelling(sign, at, whole) ? sign : ""))
}

/** Whether a sign that nobody sees belongs to what stands around it. */
function isSpelling(sign: string, at: number, whole: string): boolean {
  const code = sign.codePointAt(0)!
  const before = () => signBefore(whole, at)
  if (code === 0xfe0e || code === 0xfe0f) return /\p{Emoji}/u.test(before())
  if (code === 0x200d && isPicture(whole.codePointAt(at + 1))) {
    // Between them may stand the colour of a skin, or the selector that asks for colour.
    const last = before()
    const base = /[\ufe0f\u{1f3fb}-\u{1f3ff}]/u.test(last) ? signBefore(whole, at - last.length) : last
    return isPicture(base.codePointAt(0))
  }
  if (code === 0x200c || code === 0x200d || (code >= 0x180b && code <= 0x180d)) return isJoined(before())
  if ((code >= 0xfe00 && code <= 0xfe02) || (code >= 0xe0100 && code <= 0xe01ef))
    return /\p{Unified_Ideograph}/u.test(before())
  return DRAWN.test(sign)
}

function signBefore(text: string, at: number): string {
  const isPair = /[\udc00-\udfff]/.test(text.charAt(at - 1))
  return text.slice(Math.max(0, at - (isPair ? 2 : 1)), at)
}

function isPicture(code: number | undefined): boolean {
  return code !== undefined && /\p{Extended_Pictographic}/u.test(String.fromCodePoint(code))
}

/** A letter or mark of a script in which a joiner is part of the spelling: by its letters' shapes, or by a virama. */
function isJoined(sign: string): boolean {
  return (
    /[\p{L}\p{M}]/u.test(sign) &&
    /[\p{scx=Arab}\p{scx=Syrc}\p{scx=Mand}\p{scx=Nkoo}\p{scx=Mong}\p{scx=Phag}\p{scx=Adlm}\p{scx=Rohg}\p{scx=Deva}\p{scx=Beng}\p{scx=Guru}\p{scx=Gujr}\p{scx=Orya}\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}\p{scx=Tibt}\p{scx=Mymr}\p{scx=Khmr}\p{scx=Java}\p{scx=Bali}\p{scx=Sund}\p{scx=Newa}\p{scx=Cham}]/u.test(
      sign,
    )
  )
}
