import { type CheckedAnswer, NONE_DROPPED, settledLength } from "./cited.ts"

/** A model's words as they come, let through sentence by sentence: only what holds is ever shown. */
export type Sentences = {
  hear(piece: string): void
  /** The stream broke. It may begin again. */
  restart(): void
  /** A reply is complete. What it has that does not hold counts when it is the answer, and not a word before a search. */
  end(isAnswer: boolean): void
  /** A reply is left in the middle: a sentence that was not complete is never shown. */
  leave(): void
  /** Everything that was shown, and how much was not. */
  checked(): CheckedAnswer
  /** How often it broke and began again. */
  breaks(): number
}

/**
 * `check` says what of a text holds. What was shown stays part of the answer, so nothing is shown twice and nothing is
 * taken back: a reply that is made again, or that follows a search, adds only what was not said before.
 */
export function createSentences(check: (text: string) => CheckedAnswer, show: (sentence: string) => void): Sentences {
  const said = new Set<string>()
  const total: CheckedAnswer = { kept: [], dropped: { ...NONE_DROPPED } }
  let text = ""
  let settled = 0
  let taken = 0
  let isBroken = false
  let breaks = 0
  const begin = () => {
    text = ""
    settled = 0
    taken = 0
  }
  const take = (length: number): CheckedAnswer => {
    const checked = check(text.slice(0, length))
    for (const sentence of checked.kept.slice(taken)) {
      taken++
      if (said.has(sentence.text)) continue
      said.add(sentence.text)
      total.kept.push(sentence)
      show(sentence.text)
    }
    return checked
  }
  const count = ({ dropped }: CheckedAnswer) => {
    for (const reason of Object.keys(dropped) as (keyof typeof dropped)[]) total.dropped[reason] += dropped[reason]
  }
  return {
    hear(piece) {
      if (isBroken) breaks++
      isBroken = false
      text += piece
      const length = settledLength(text)
      if (length <= settled) return
      settled = length
      take(length)
    },
    restart() {
      isBroken = true
      begin()
    },
    end(isAnswer) {
      const checked = take(text.length)
      if (isAnswer) count(checked)
      begin()
    },
    leave() {
      count(take(settled))
      begin()
    },
    checked: () => total,
    breaks: () => breaks,
  }
}
