/**
 * The text as people see it, without control characters, escape sequences, and characters that hide or reorder text. A person and
 * a model must see the same text: invisible characters can hide sentences from the person (tags, selectors), reorder words
 * (bidirectional controls) or control a terminal (escape sequences). Newlines and tabs are kept. Joiners and selectors are kept
 * if a character or word is spelled with them, but only one at a time, because a series of them is a code. Tags are removed even
 * from flags: nothing else can spell invisible letters.
 */
export function visibleText(text: string): string {
  return PLAIN_TEXT.test(text) ? text : withoutHidden(withoutControls(text))
}

/**
 * Makes every text in an answer visible, and counts the hidden characters that were removed, not counting controls. Undefined
 * fields are removed too, so that a program gets the same fields as a reader of the JSON.
 */
export function withVisibleTexts(output: unknown): { output: unknown; removed: number } {
  let removed = 0
  const clean = (text: string): string => {
    if (PLAIN_TEXT.test(text)) return text
    const printable = withoutControls(text)
    const visible = withoutHidden(printable)
    if (visible.length < printable.length) removed += [...printable].length - [...visible].length
    return visible
  }
  const cleanValue = (value: unknown): unknown => {
    if (typeof value === "string") return clean(value)
    if (typeof value !== "object" || value === null) return value
    if (Array.isArray(value)) return value.map(cleanValue)
    if (isPlainRow(value)) return value
    const definedFields = Object.entries(value).filter(([, inner]) => inner !== undefined)
    return Object.fromEntries(definedFields.map(([name, inner]) => [clean(name), cleanValue(inner)]))
  }
  return { output: cleanValue(output), removed }
}

/** True for an object without hidden characters or nested values. It does not have to be copied. */
function isPlainRow(row: object): boolean {
  for (const [name, value] of Object.entries(row)) {
    const isPlainValue =
      typeof value === "string" ? PLAIN_TEXT.test(value) : typeof value !== "object" && value !== undefined
    if (!isPlainValue || !PLAIN_TEXT.test(name)) return false
  }
  return true
}

const PLAIN_TEXT = /^[\n\t\x20-\x7e]*$/
const ESCAPE_SEQUENCE = /\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|[ -~]?)/g

/**
 * The text without control characters. Lone surrogates are replaced: some models' servers refuse every later request that
 * contains one.
 */
function withoutControls(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?|[\u2028\u2029]/g, "\n")
    .replace(ESCAPE_SEQUENCE, "")
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "")
}

/**
 * Matches characters that are usually not drawn. The exceptions are in `DRAWN_FORMAT_CHARACTER`, such as the number signs of
 * Arabic, Syriac and Kaithi.
 */
const HIDDEN_CHARACTER = /[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu
const DRAWN_FORMAT_CHARACTER = /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/u

function withoutHidden(text: string): string {
  return text.replace(HIDDEN_CHARACTER, (character, at: number, fullText: string) =>
    isPartOfSpelling(character, at, fullText) ? character : "",
  )
}

/** True if an invisible character belongs to the spelling of the text around it. */
function isPartOfSpelling(character: string, at: number, text: string): boolean {
  const code = character.codePointAt(0)!
  const before = () => characterBefore(text, at)
  if (code === 0xfe0e || code === 0xfe0f) return /\p{Emoji}/u.test(before())
  if (code === 0x200d && isPicture(text.codePointAt(at + 1))) {
    // A skin colour, or the selector for colour, may be between the picture and the joiner.
    const modifier = before()
    const base = /[\ufe0f\u{1f3fb}-\u{1f3ff}]/u.test(modifier) ? characterBefore(text, at - modifier.length) : modifier
    return isPicture(base.codePointAt(0))
  }
  if (code === 0x200c || code === 0x200d || (code >= 0x180b && code <= 0x180d)) return usesJoiners(before())
  if ((code >= 0xfe00 && code <= 0xfe02) || (code >= 0xe0100 && code <= 0xe01ef))
    return /\p{Unified_Ideograph}/u.test(before())
  return DRAWN_FORMAT_CHARACTER.test(character)
}

function characterBefore(text: string, at: number): string {
  const isPair = /[\udc00-\udfff]/.test(text.charAt(at - 1))
  return text.slice(Math.max(0, at - (isPair ? 2 : 1)), at)
}

function isPicture(code: number | undefined): boolean {
  return code !== undefined && /\p{Extended_Pictographic}/u.test(String.fromCodePoint(code))
}

/**
 * True for a letter or mark of a script in which joiners are part of the spelling: they change the shape of letters or join them.
 */
function usesJoiners(character: string): boolean {
  return (
    /[\p{L}\p{M}]/u.test(character) &&
    /[\p{scx=Arab}\p{scx=Syrc}\p{scx=Mand}\p{scx=Nkoo}\p{scx=Mong}\p{scx=Phag}\p{scx=Adlm}\p{scx=Rohg}\p{scx=Deva}\p{scx=Beng}\p{scx=Guru}\p{scx=Gujr}\p{scx=Orya}\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}\p{scx=Tibt}\p{scx=Mymr}\p{scx=Khmr}\p{scx=Java}\p{scx=Bali}\p{scx=Sund}\p{scx=Newa}\p{scx=Cham}]/u.test(
      character,
    )
  )
}
