import { withSize } from "../../render/budget.ts"
import { fillLines, fillLinesFrom, type LineRange } from "../../render/fill.ts"
import { READABLE_TOKENS_PER_MSG } from "../../render/limits.ts"
import { cuttableLines, lineText } from "../../render/line.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { formLine, headOf, rootsOf } from "../view.ts"
import { OMITTABLE_KINDS, type OmittableKind, type ScanInput } from "./forms.ts"
import { limitOptions, openConversation, selectParts } from "./reading.ts"

export async function run(dex: Dex, input: ScanInput) {
  const { row, store } = await openConversation(dex, input)
  const { messages, hidden } = selectParts(await store.messages(row.ref), input)
  const source = { dex, row, hidden, messages: messages.slice(input.offset), input }
  const fullView = viewOf(source, [])
  if (input.max_tokens === undefined)
    return withSize(fullView.answer({ from: 0, to: fullView.lines.length }, input.tokens_per_msg))
  const kinds = omittableKinds(source.messages)
  const presentKinds = OMITTABLE_KINDS.filter((kind) => kinds.includes(kind))
  // Messages are omitted before texts are shortened: first the least informative kinds, then the last messages.
  for (let omittedCount = 0; omittedCount <= presentKinds.length; omittedCount++) {
    const { lines, answer } = viewOf(source, kinds, presentKinds.slice(0, omittedCount))
    if (lines.length === 0) break
    const filled = fillLinesFrom(READABLE_TOKENS_PER_MSG, lines, input.max_tokens, firstLines, answer)
    if (filled && (filled.isComplete || omittedCount === presentKinds.length)) return filled.answer
  }
  return fillLines(fullView.lines, input.max_tokens, firstLines, fullView.answer)
}

const firstLines = (count: number): LineRange => ({ from: 0, to: count })

type ScanView = { dex: Dex; row: ConversationRow; hidden?: number; messages: StoredMessage[]; input: ScanInput }

/** The lines without the omitted kinds of messages, and a function that builds the answer from some of the lines. */
function viewOf(
  { dex, row, hidden, messages, input }: ScanView,
  kinds: (OmittableKind | undefined)[],
  omitted: OmittableKind[] = [],
) {
  const positions = messages.map((_, i) => i).filter((i) => !omitted.some((kind) => kind === kinds[i]))
  const roots = rootsOf(row)
  const entries = positions.map((i) => ({ message: messages[i]!, label: String(messages[i]!.number), roots }))
  const lines = cuttableLines(entries, input.max_tokens, input.tokens_per_msg)
  const answer = ({ to: kept }: LineRange, tokensPerMsg: number) => {
    const end = positions[kept] ?? messages.length
    const leftOut = omitted.flatMap((kind) => {
      const count = kinds.slice(0, end).filter((candidate) => candidate === kind).length
      return count === 0 ? [] : [{ kind, messages: count }]
    })
    return {
      ...headOf(row),
      message_count: row.message_count,
      lines: lines.slice(0, kept).map((line) => lineText(line, tokensPerMsg)),
      tokens_per_msg: Math.floor(tokensPerMsg),
      hidden_parts: hidden,
      left_out: leftOut.length > 0 ? leftOut : undefined,
      truncated:
        kept < lines.length
          ? {
              messages_left_out: messages.length - end,
              next_message_index: messages[end]!.number,
              continue_with: formLine(dex, "scan", [row], { ...limitOptions(input), offset: input.offset + end }),
            }
          : undefined,
    }
  }
  return { lines, answer }
}

/** The kind of each message if it may be omitted. Undefined if the message contains words of a person or an agent. */
function omittableKinds(messages: readonly StoredMessage[]): (OmittableKind | undefined)[] {
  const failed = new Set<string>()
  for (const { parts, effects } of messages) {
    for (const part of parts)
      if (part.type === "tool_result" && part.is_error && part.call_id !== undefined) failed.add(part.call_id)
    for (const effect of effects ?? [])
      if (effect.type === "command" && effect.call_id !== undefined && (effect.exit_status ?? 0) !== 0)
        failed.add(effect.call_id)
  }
  return messages.map(({ parts }) => {
    if (parts.some((part) => hasWords(part) || part.type === "image")) return undefined
    const toolParts = parts.filter((part) => part.type === "tool_call" || part.type === "tool_result")
    if (toolParts.length === 0) return "asides"
    const isFailure = toolParts.some(
      (part) =>
        (part.type === "tool_result" && part.is_error) || (part.call_id !== undefined && failed.has(part.call_id)),
    )
    if (isFailure) return "failures"
    return toolParts.some((part) => part.type === "tool_call") ? "calls" : "results"
  })
}

function hasWords({ type, origin, text }: StoredMessage["parts"][number]): boolean {
  return type === "summary" || (type === "text" && origin !== "injected" && text.trim() !== "")
}
