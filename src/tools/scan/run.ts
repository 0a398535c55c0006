import { charactersWithin } from "../../core/tokens.ts"
import { sized } from "../../render/budget.ts"
import { readFields, withFields } from "../../render/fields.ts"
import { filled, type LineRange } from "../../render/fill.ts"
import { limitOf } from "../../render/limits.ts"
import { linesOf, lineText } from "../../render/line.ts"
import type { Dex } from "../context.ts"
import { resolveConversation } from "../resolve.ts"
import { commandLine, headOf, rootsOf } from "../view.ts"

export type ScanInput = {
  id?: string
  tokens_per_msg: number
  max_tokens?: number
  show?: string[]
  hide?: string[]
  session?: string
  offset: number
}

export async function run(dex: Dex, input: ScanInput) {
  const { row } = await resolveConversation(dex, input)
  const store = await dex.store()
  const wanted = withFields(await store.messages(row.ref), readFields(input))
  const messages = wanted.messages.slice(input.offset)
  const roots = rootsOf(row)
  const entries = messages.map((message) => ({ message, label: String(message.number), roots }))
  const lines = linesOf(entries, longestText(input))
  const { hidden } = wanted
  const answer = ({ to: kept }: LineRange, tokensPerMsg: number) => ({
    ...headOf(row),
    message_count: row.message_count,
    lines: lines.slice(0, kept).map((line) => lineText(line, tokensPerMsg)),
    tokens_per_msg: Math.floor(tokensPerMsg),
    ...(hidden > 0 && { hidden_parts: hidden }),
    ...(kept < lines.length && {
      truncated: {
        messages_left_out: lines.length - kept,
        next_message_index: messages[kept]!.number,
        continue_with: commandLine("scan", [row], {
          "max-tokens": input.max_tokens,
          show: input.show,
          hide: input.hide,
          offset: input.offset + kept,
        }),
      },
    }),
  })
  if (input.max_tokens === undefined) return sized(answer({ from: 0, to: lines.length }, input.tokens_per_msg))
  return filled(lines, input.max_tokens, (count) => ({ from: 0, to: count }), answer)
}

/** No text can be longer in any answer: what is beyond need not be looked at. */
function longestText(input: ScanInput): number {
  return input.max_tokens === undefined ? limitOf("user", input.tokens_per_msg) : charactersWithin(input.max_tokens)
}
