import { charactersWithin } from "../../core/tokens.ts"
import { sized } from "../../render/budget.ts"
import { readFields, withFields } from "../../render/fields.ts"
import { filled, filledFrom, type LineRange } from "../../render/fill.ts"
import { limitOf, READABLE_TOKENS_PER_MSG } from "../../render/limits.ts"
import { linesOf, lineText } from "../../render/line.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { resolveConversation } from "../resolve.ts"
import { commandLine, headOf, rootsOf } from "../view.ts"
import { LEAVABLE, type Leavable, leavableOf } from "./leave-out.ts"

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
  const scanned = { row, hidden: wanted.hidden, messages: wanted.messages.slice(input.offset), input }
  const all = viewOf(scanned, [])
  if (input.max_tokens === undefined) return sized(all.answer({ from: 0, to: all.lines.length }, input.tokens_per_msg))
  const kinds = leavableOf(scanned.messages)
  const present = LEAVABLE.filter((kind) => kinds.includes(kind))
  // Messages go before words do: the least telling first, then the last ones.
  for (let left = 0; left <= present.length; left++) {
    const { lines, answer } = viewOf(scanned, kinds, present.slice(0, left))
    if (lines.length === 0) break
    const found = filledFrom(READABLE_TOKENS_PER_MSG, lines, input.max_tokens, fromTheTop, answer)
    if (found && (found.isWhole || left === present.length)) return found.answer
  }
  return filled(all.lines, input.max_tokens, fromTheTop, all.answer)
}

const fromTheTop = (count: number): LineRange => ({ from: 0, to: count })

type Scanned = { row: ConversationRow; hidden: number; messages: StoredMessage[]; input: ScanInput }

/** The lines without those kinds of messages, and the answer that some of them make. */
function viewOf({ row, hidden, messages, input }: Scanned, kinds: (Leavable | undefined)[], left: Leavable[] = []) {
  const places = messages.map((_, i) => i).filter((i) => !left.some((kind) => kind === kinds[i]))
  const roots = rootsOf(row)
  const entries = places.map((i) => ({ message: messages[i]!, label: String(messages[i]!.number), roots }))
  const lines = linesOf(entries, longestText(input))
  const answer = ({ to: kept }: LineRange, tokensPerMsg: number) => {
    const end = places[kept] ?? messages.length
    const leftOut = left.flatMap((kind) => {
      const count = kinds.slice(0, end).filter((one) => one === kind).length
      return count === 0 ? [] : [{ kind, messages: count }]
    })
    return {
      ...headOf(row),
      message_count: row.message_count,
      lines: lines.slice(0, kept).map((line) => lineText(line, tokensPerMsg)),
      tokens_per_msg: Math.floor(tokensPerMsg),
      ...(hidden > 0 && { hidden_parts: hidden }),
      ...(leftOut.length > 0 && { left_out: leftOut }),
      ...(kept < lines.length && {
        truncated: {
          messages_left_out: messages.length - end,
          next_message_index: messages[end]!.number,
          continue_with: commandLine("scan", [row], {
            "max-tokens": input.max_tokens,
            show: input.show,
            hide: input.hide,
            offset: input.offset + end,
          }),
        },
      }),
    }
  }
  return { lines, answer }
}

/** No text can be longer in any answer: what is beyond need not be looked at. */
function longestText(input: ScanInput): number {
  return input.max_tokens === undefined ? limitOf("user", input.tokens_per_msg) : charactersWithin(input.max_tokens)
}
