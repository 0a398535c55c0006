import { topicWords } from "../../core/words.ts"
import { isPastedText, sentencesOf, typedLines } from "../../learn/decisions/typed.ts"
import type { StoredMessage } from "../../store/history/store.ts"

// Chooses the few sentences to quote from a conversation that say most about a prompt and about the conversation itself: the
// person's words, and the agent's if they are trusted.

export type ChosenQuote = { by: "person" | "agent"; text: string; number: number; order: number }

type QuoteOptions = {
  /** The words of the prompt and of the conversation's topic, each with its weight. */
  words: ReadonlyMap<string, number>
  topic: ReadonlyMap<string, number>
  /** The number of the message at which the turn begins that matches best. */
  around: number
  /** The agent's words from this time on may be a stranger's. */
  web_at?: number
  maxChars: number
}

type Sentence = ChosenQuote & { isLast: boolean; words: Set<string>; weight: number }

/** A conversation in which less was said is read from beginning to end; of a longer one only what is near the best turn. */
const MAX_SHORT_CHARS = 8_000
const TURNS_AFTER = 3
/** Longer sentences are quoted by clauses. */
const MAX_SENTENCE_CHARS = 250
const RULE =
  /\b(?:settled|final|decided|decision|agreed|rule|amend\w*|supersed\w*|always|never|must|only|exactly|instead|not|should|because|keep|leave)\b/i
const RECAP = /\b(?:recap|settled|summary|in short|amend\w*|to sum up|final rule|so the rule|the policy)\b/i
/** The shares of the room that the agent's last message may take. */
const ROOM_FOR_RECAP = 0.75
const ROOM_FOR_LAST = 0.5
const TOPIC_WEIGHT = 4
const REPEATED_WORD = 0.15
const PERSON = 1.3
const RULE_WEIGHT = 1.3
const LAST_OF_TURN = 1.3
const LATENESS = 0.6
/** Added to a sentence's length, so that a short one does not win only by being short. */
const LENGTH_OFFSET = 40
/** The label and the quotation marks around a quote. */
const LABEL_CHARS = 18

/** Returns the chosen sentences, best first. Together they have at most this many characters. */
export function chooseQuotes(messages: readonly StoredMessage[], options: QuoteOptions): ChosenQuote[] {
  const sentences = sentencesIn(messages, options)
  const chosen = new Set<Sentence>()
  const covered = new Set<string>()
  const take = (sentence: Sentence, maxChars: number) => {
    if (chosen.has(sentence) || charsOf([...chosen, sentence]) > maxChars) return
    chosen.add(sentence)
    for (const word of sentence.words) covered.add(word)
  }
  // A conversation in which something was settled ends with the agent's summary of it.
  const last = sentences.filter(({ isLast }) => isLast)
  const share = last.some(({ text }) => RECAP.test(text)) ? ROOM_FOR_RECAP : ROOM_FOR_LAST
  for (const sentence of last) take(sentence, options.maxChars * share)
  for (;;) {
    const rest = sentences.filter((one) => !chosen.has(one) && charsOf([...chosen, one]) <= options.maxChars)
    if (rest.length === 0) break
    const gain = new Map(rest.map((one) => [one, gainOf(one, covered, options)]))
    const best = rest.reduce((a, b) => (gain.get(b)! > gain.get(a)! ? b : a))
    if (gain.get(best)! <= 0) break
    take(best, options.maxChars)
  }
  const value = new Map([...chosen].map((one) => [one, gainOf(one, new Set(), options)]))
  return [...chosen].sort((a, b) => value.get(b)! - value.get(a)!)
}

export function charsOf(quotes: readonly ChosenQuote[]): number {
  return quotes.reduce((sum, { text }) => sum + text.length + LABEL_CHARS, 0)
}

/** Puts quotes in the order of the conversation, and joins those that the same side said in a row. */
export function joinQuotes(quotes: readonly ChosenQuote[]): ChosenQuote[] {
  const joined: ChosenQuote[] = []
  for (const quote of [...quotes].sort((a, b) => a.order - b.order)) {
    const last = joined.at(-1)
    if (last?.by === quote.by) last.text += ` ${quote.text}`
    else joined.push({ ...quote })
  }
  return joined
}

function gainOf(sentence: Sentence, covered: ReadonlySet<string>, { words, topic }: QuoteOptions): number {
  let sum = 0
  for (const word of sentence.words) {
    const weight = (words.get(word) ?? 0) + TOPIC_WEIGHT * (topic.get(word) ?? 0)
    sum += covered.has(word) ? weight * REPEATED_WORD : weight
  }
  return (sum * sentence.weight) / Math.sqrt(sentence.text.length + LENGTH_OFFSET)
}

type Spoken = { by: ChosenQuote["by"]; number: number; lines: string[] }

function sentencesIn(messages: readonly StoredMessage[], options: QuoteOptions): Sentence[] {
  const spoken = nearBest(
    messages.flatMap((message) => spokenIn(message, options.web_at)),
    options.around,
  )
  const lastOfAgent = charsIn(spoken) <= MAX_SHORT_CHARS ? spoken.findLastIndex(({ by }) => by === "agent") : -1
  let order = 0
  return spoken.flatMap(({ by, number, lines }, i) => {
    const isTurnEnd = by === "agent" && spoken[i + 1]?.by !== "agent"
    const weight =
      (by === "person" ? PERSON : isTurnEnd ? LAST_OF_TURN : 1) * (1 + (LATENESS * i) / Math.max(1, spoken.length - 1))
    return lines.flatMap(clausesOf).map((text) => ({
      by,
      number,
      text,
      order: order++,
      isLast: i === lastOfAgent,
      words: new Set(topicWords(text)),
      weight: weight * (RULE.test(text) ? RULE_WEIGHT : 1),
    }))
  })
}

function clausesOf(line: string): string[] {
  return line.length > MAX_SENTENCE_CHARS ? line.split(/(?<=;)\s+/).flatMap(sentencesOf) : sentencesOf(line)
}

/** The lines of a message that may be quoted, without code and program output. */
function spokenIn({ number, at, parts, abandoned }: StoredMessage, webAt: number | undefined): Spoken[] {
  if (abandoned) return []
  return parts.flatMap((part): Spoken[] => {
    if (part.type !== "text" || (part.origin !== "person" && part.origin !== "agent")) return []
    if (part.origin === "agent" && webAt !== undefined && (at === undefined || at >= webAt)) return []
    const lines = typedLines(part.text)
    if (part.origin === "person" && isPastedText(part.text, lines)) return []
    return lines.length === 0 ? [] : [{ by: part.origin, number, lines }]
  })
}

function nearBest(spoken: Spoken[], around: number): Spoken[] {
  if (charsIn(spoken) <= MAX_SHORT_CHARS) return spoken
  const found = spoken.findIndex(({ number }) => number >= around)
  const start = Math.max(0, found)
  const prompts = spoken.flatMap(({ by }, i) => (by === "person" && i > start ? i : []))
  return spoken.slice(start, prompts[TURNS_AFTER - 1])
}

function charsIn(spoken: readonly Spoken[]): number {
  return spoken.reduce((sum, { lines }) => sum + lines.join("\n").length, 0)
}
