/** A source that a sentence of an answer is checked against. */
export type Evidence = { text: string; title: string; ref: string; date?: string }

const FENCED_CODE = /^```[^\n]*\n([\s\S]*?)^```[ \t]*$/m
const CODE_SPAN = /`([^`\n]+)`/g
/** Matches punctuation around a word. */
const SURROUNDING_PUNCTUATION = /^[("'“‘[{<*_~]+|[)"'”’\]}>*_~,;:!?.…]+$/g
const NAME_LIKE =
  /\d|[\\/_@#$=()]|\w\.\w|^--?[a-z]|[a-z][A-Z]|^[A-Z]{2,}|^[A-Z][a-z]+$|^[A-Z][\w-]*-\w+$|^[A-Z][a-z]+[A-Z]/

/** Matches common words that start a sentence but are not names. */
const OPENING_WORDS =
  /^(?:a|about|according|after|again|all|already|also|although|among|an|and|another|any|anyone|apart|are|as|at|because|before|behind|being|besides|between|both|but|by|can|compared|depending|despite|did|do|does|during|each|either|even|every|everything|except|first|for|from|given|has|have|having|he|hence|here|how|however|i|if|in|inside|instead|into|is|it|its|later|like|many|most|much|neither|never|next|no|nobody|none|nor|not|nothing|now|of|on|once|one|only|or|other|otherwise|our|out|over|per|rather|second|several|she|should|since|so|some|still|such|than|that|the|their|then|there|these|they|this|those|though|three|through|thus|to|together|today|two|under|unless|until|up|use|using|was|we|were|what|whatever|when|whenever|where|whether|which|while|who|why|will|with|within|without|you|your|more|less|people|someone|plain|start|run|set|add|call|check|make|keep|see|try|open|put|pass|\w+ing|\w+ed|\w+ly)$/i

/**
 * Returns the first specific in a sentence that none of its sources contains: a line of code, a code span, a path, a number, a
 * flag, a command or a name. A single wrong letter in one of these would make the sentence false. Undefined if all are supported.
 */
export function findUnsupported(sentence: string, sources: Evidence[]): string | undefined {
  const texts = sources.flatMap(({ text, title }) => [text, title]).map(normaliseText)
  const labels = new Set(sources.flatMap(({ ref, date }) => [ref, date]))
  const lowerTexts = texts.map((text) => text.toLowerCase())
  const isSupported = (literal: string, isCode: boolean) =>
    isCode
      ? texts.some((text) => occursIn(text, normaliseText(literal)))
      : lowerTexts.some((text) => occursIn(text, normaliseText(literal).toLowerCase()))
  for (const { literal, isCode, isOpening } of findSpecifics(sentence))
    if (
      !labels.has(literal) &&
      !(isOpening && hasSameBeginning(lowerTexts, literal)) &&
      !formsOf(literal).some((form) => isSupported(form, isCode))
    )
      return literal
  return undefined
}

/** `isOpening` is true for a capitalised word at the start of a sentence: it may be an ordinary word and not a name. */
export type Specific = { literal: string; isCode: boolean; isOpening?: boolean }

/** Lines of code, code spans, and every other word that looks like a name, number, path or flag. */
export function findSpecifics(sentence: string): Specific[] {
  const specifics: Specific[] = []
  const unfenced = sentence.replace(FENCED_CODE, (_, code: string) => {
    for (const line of code.split("\n")) if (line.trim() !== "") specifics.push({ literal: line.trim(), isCode: true })
    return " "
  })
  const prose = unfenced.replace(CODE_SPAN, (_, code: string) => {
    specifics.push({ literal: code.trim(), isCode: true })
    return " ` "
  })
  let isFirst = true
  for (const raw of prose.replaceAll(/\[\d{1,3}\]/g, " ").split(/\s+/)) {
    const word = raw.replaceAll(SURROUNDING_PUNCTUATION, "").replace(/['’]s$/, "")
    if (word === "" || !/[\p{L}\p{N}]/u.test(word)) {
      if (raw === "`") isFirst = false
      continue
    }
    // An ordinary word has a capital letter only at the start of a sentence.
    const isOpening = isFirst && /^\p{Lu}\p{Ll}*$/u.test(word)
    isFirst = /[.!?:]["'”)]*$/.test(raw)
    if (word === "I" || !NAME_LIKE.test(word) || (isOpening && OPENING_WORDS.test(word))) continue
    const isCode = /[\\/_=]|^-|^[A-Z]{2,}s?$/.test(word)
    specifics.push({ literal: word, isCode, isOpening })
  }
  return specifics
}

/** The forms of a name that count as a match: as written, without `()`, and as a singular (API for APIs). */
function formsOf(literal: string): string[] {
  const withoutCall = literal.replace(/\((?:\.{3}|…)?\)$/, "")
  return [literal, withoutCall, ...(/^[A-Z]{2,}s$/.test(withoutCall) ? [withoutCall.slice(0, -1)] : [])]
}

/** True if a word in one of the texts begins with the same letters as this word. */
function hasSameBeginning(lowerTexts: string[], word: string): boolean {
  const beginning = word.toLowerCase().slice(0, Math.max(4, word.length - 2))
  return lowerTexts.some((text) => new RegExp(`\\b${beginning}`).test(text))
}

/** True if the text contains `literal`, and not only as part of a longer word or number. */
function occursIn(text: string, literal: string): boolean {
  if (literal === "") return true
  const isWordCharacter = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}_]/u.test(character)
  const [first, last] = [isWordCharacter(literal[0]), isWordCharacter(literal.at(-1))]
  for (let at = text.indexOf(literal); at !== -1; at = text.indexOf(literal, at + 1)) {
    const [before, after] = [text[at - 1], text[at + literal.length]]
    const isInsideNumber =
      /\d$/.test(literal) && /^[.,]\d/.test(text.slice(at + literal.length, at + literal.length + 2))
    if (!(first && isWordCharacter(before)) && !(last && isWordCharacter(after)) && !isInsideNumber) return true
  }
  return false
}

/** Simplifies white space, removes `**` and backticks, and turns 10,000 into 10000. */
function normaliseText(text: string): string {
  return text
    .replaceAll(/\s+/g, " ")
    .replaceAll("**", "")
    .replaceAll("`", "")
    .replaceAll(/(\d),(?=\d{3}\b)/g, "$1")
    .trim()
}
