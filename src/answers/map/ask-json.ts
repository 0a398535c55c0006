import type { Schema } from "../../core/schema.ts"
import type { Model, ModelReply } from "../../llm/model.ts"
import type { CheckedReply } from "./check.ts"
import { askedAgain, type Question } from "./prompt.ts"
import type { Purse } from "./spend.ts"

export type Answered<T> =
  | { type: "answer"; value: T; usage: ModelReply["usage"] }
  /** It was asked as often as it may be, and no answer could be taken. */
  | { type: "bad"; reason: string }
  /** It was not asked, or not again: there were no tokens left for it. */
  | { type: "no_tokens" }

const RETRIES = 2

/** Asks until an answer can be taken, telling the model what was wrong with the last one. Throws what `reply` throws. */
export async function askJson(
  { model, purse, signal }: { model: Model; purse: Purse; signal: AbortSignal },
  question: Question,
  schema: Schema,
  check: (reply: ModelReply) => CheckedReply,
): Promise<Answered<Extract<CheckedReply, { ok: unknown }>["ok"]>> {
  let reason = ""
  for (let tries = 0; tries <= RETRIES; tries++) {
    const { system, text } = reason === "" ? question : askedAgain(question, reason)
    const giveBack = purse.take({ system, text })
    if (!giveBack) return { type: "no_tokens" }
    let reply: ModelReply
    try {
      reply = await model.reply({ system, messages: [{ role: "user", content: text }], json_schema: schema, signal })
    } finally {
      giveBack()
    }
    const checked = check(reply)
    if ("ok" in checked) return { type: "answer", value: checked.ok, usage: reply.usage }
    reason = checked.wrong
  }
  return { type: "bad", reason: `${RETRIES + 1} answers could not be taken; of the last one, ${reason}` }
}
