import { estimateTokens } from "../../core/tokens.ts"
import type { Model } from "../../llm/model.ts"
import type { Question } from "./prompt.ts"

/** What may still be spent. A request is made only when it is allowed beforehand, with the longest answer it can have. */
export type Purse = {
  /** Undefined when there is no room for it. Give it back when the request is over: what it took is counted by then. */
  take(question: Question): (() => void) | undefined
  /** Why there is no room for it. */
  refusal(question: Question): string
  spent(): number
}

export function openPurse(model: Model, most: number | undefined, answerTokens: number): Purse {
  let held = 0
  const spent = () => model.used().input + model.used().output
  const neededFor = ({ system, text }: Question) => estimateTokens(system + text) + answerTokens
  return {
    spent,
    refusal: (question) =>
      `the next request may need ${neededFor(question)} tokens, and of ${most} tokens ${spent()} were spent`,
    take(question) {
      const needed = neededFor(question)
      if (most !== undefined && spent() + held + needed > most) return undefined
      held += needed
      return () => {
        held -= needed
      }
    },
  }
}
