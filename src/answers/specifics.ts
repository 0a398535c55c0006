/** The text of a source, with its date and title. */
export type Evidence = { text: string; title: string; ref: string; date?: string }

const FENCED_CODE = /^```[^\n]*\n([\s\S]*?)^```[ \t]*$/m
const CODE_SPAN = /`([^`\n]+)`/g
/** Matches punctuation around a word. */
const SURROUNDING_PUNCTUATION = /^[("'“‘[{<*_~]+|[)"'”’\]}>*_~,;:!?.…]+$/g
const NAME_LIKE =
  /\d|[\\/_@#$=()]|\w\.\w|^--?[a-z]|[a-z][A-Z]|^[A-Z]{2,}|^[A-Z][a-z]+$|^[A-Z][\w-]*-\w+$|^[A-Z][a-z]+[A-Z]/

/** Matches words at the start of a sentence that name nothing. */
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
  const isSupported = (wanted: string, isCode: boolean) =>
    isCode
      ? texts.some((text) => occursIn(text, normaliseText(wanted)))
      : lowerTexts.some((text) => occursIn(text, normaliseText(wanted).toLowerCase()))
  for (const { wanted, isCode, isOpening } of findSpecifics(sentence))
    if (
      !labels.has(wanted) &&
      !(isOpening && hasSameBeginning(lowerTexts, wanted)) &&
      !formsOf(wanted).some((form) => isSupported(form, isCode))
    )
      return wanted
  return undefined
}

/** `isOpening` is true for the first word of a sentence, which may be an ordinary word in another form. */
export type Specific = { wanted: string; isCode: boolean; isOpening?: boolean }

/** Lines of code, code spans, and every other word that looks like a name, number, path or flag. */
export function findSpecifics(sentence: string): Specific[] {
  const specifics: Specific[] = []
  const unfenced = sentence.replace(FENCED_CODE, (_, code: string) => {
    for (const line of code.split("\n")) if (line.trim() !== "") specifics.push({ wanted: line.trim(), isCode: true })
    return " "
  })
  const prose = unfenced.replace(CODE_SPAN, (_, code: string) => {
    specifics.push({ wanted: code.trim(), isCode: true })
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
    specifics.push({ wanted: word, isCode, isOpening })
  }
  return specifics
}

/** The forms of a name that count as a match: as written, without the brackets of a call, and in the singular. */
function formsOf(wanted: string): string[] {
  const withoutCall = wanted.replace(/\((?:\.{3}|…)?\)$/, "")
  return [wanted, withoutCall, ...(/^[A-Z]{2,}s$/.test(withoutCall) ? [withoutCall.slice(0, -1)] : [])]
}

/** True if a word in one of the texts begins like this one. */
function hasSameBeginning(lowerTexts: string[], word: string): boolean {
  const beginning = word.toLowerCase().slice(0, Math.max(4, word.length - 2))
  return lowerTexts.some((text) => new RegExp(`\\b${beginning}`).test(text))
}

/** True if the text contains `wanted`, and not only as part of a longer word or number. */
function occursIn(text: string, wanted: string): boolean {
  if (wanted === "") return true
  const isWordCharacter = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}_]/u.test(character)
  const [first, last] = [isWordCharacter(wanted[0]), isWordCharacter(wanted.at(-1))]
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1)) {
    const [before, after] = [text[at - 1], text[at + wanted.length]]
    const isInsideNumber = /\d$/.test(wanted) && /^[.,]\d/.test(text.slice(at + wanted.length, at + wanted.length + 2))
    if (!(first && isWordCharacter(before)) && !(last && isWordCharacter(after)) && !isInsideNumber) return true
  }
  return false
}

/** The text without differences in white space and emphasis, and with 10,000 as 10000. */
function normaliseText(text: string): string {
  return text
    .replaceAll(/\s+/g, " ")
    .replaceAll("**", "")
    .replaceAll("`", "")
    .replaceAll(/(\d),(?=\d{3}\b)/g, "$1")
    .trim()
}
