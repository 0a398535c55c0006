import type { Part } from "../../core/conversation.ts"
import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { tokensOf } from "../../core/tokens.ts"
import { fitted, largest, sized, tooSmall } from "../../render/budget.ts"
import { readFields, withFields } from "../../render/fields.ts"
import { formatIndices, isInRanges, type Range, readIndices } from "../../render/indices.ts"
import { patchText } from "../../render/patch.ts"
import type { ConversationRow, MessageVersion, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { resolveConversation } from "../resolve.ts"
import { commandLine, headOf, messageState, originsText } from "../view.ts"

export type ReadInput = {
  id?: string
  messages?: string
  max_tokens?: number
  show?: string[]
  hide?: string[]
  session?: string
  from_char: number
}

/** A part with its change as text. */
export type ReadPart = Omit<Part, "hunks" | "sha256"> & { patch?: string }

export async function run(dex: Dex, typed: ReadInput) {
  const input = withSession(typed)
  const { row, number } = await resolveConversation(dex, input)
  const store = await dex.store()
  const versions = await store.versions(row.ref)
  const ranges = rangesOf(input, number, versions)
  const numbers = versions.map((version) => version.number).filter((n) => isInRanges(ranges, n))
  const chosen = await store.messages(row.ref, numbers)
  const { messages, hidden } = withFields(chosen, readFields(input))
  const missing = ranges.filter(({ from, to }) => from === to && !numbers.includes(from)).map(({ from }) => from)
  const whole = messages.map(entryOf)
  // What was read of the first message before is not given again.
  const entries = whole.map((entry, i) => (i === 0 && input.from_char > 0 ? sliced(entry, input.from_char) : entry))
  const frame = (shown: Entry[], next: { index: number; from_char?: number } | undefined, leftOut: number) => ({
    ...headOf(row),
    messages: shown,
    ...(missing.length > 0 && { not_found: formatIndices(missing) }),
    ...(hidden > 0 && { hidden_parts: hidden }),
    ...(next && {
      truncated: {
        messages_left_out: leftOut,
        next_message_index: next.index,
        continue_with: goOn(
          row,
          input,
          chosen.slice(chosen.findIndex((one) => one.number === next.index)),
          next.from_char,
        ),
      },
    }),
  })
  const build = (kept: number) =>
    frame(
      entries.slice(0, kept),
      kept < entries.length ? { index: entries[kept]!.index } : undefined,
      entries.length - kept,
    )
  const fit = fitted(entries.length, build, input.max_tokens, (i) => charactersOf(entries[i]!.parts))
  if (fit && (fit.kept > 0 || entries.length === 0)) return fit.answer
  // Not even the first message fits: as much of it as does.
  const maxTokens = input.max_tokens!
  const first = whole[0]
  if (!first) throw tooSmall(maxTokens, build(0))
  const length = charactersOf(first.parts)
  const begin = (to: number) => {
    const part = sliced(first, input.from_char, to)
    const next = part.cut!.to < length ? { index: first.index, from_char: part.cut!.to } : undefined
    const after = whole[1] && { index: whole[1].index }
    return sized(frame([part], next ?? after, entries.length - (next ? 0 : 1)))
  }
  const from = Math.min(input.from_char, length)
  const to = largest(from + 1, Math.max(length, from + 1), (n) => begin(n).estimated_tokens <= maxTokens)
  if (to === undefined) throw tooSmall(maxTokens, begin(from + 1))
  return begin(to)
}

/** `dex read 5-10 --session current`: with the session told, the only word is which messages. */
function withSession(input: ReadInput): ReadInput {
  const session = input.session !== undefined && input.session !== "all"
  if (!session || input.messages !== undefined || input.id === undefined) return input
  const { id, ...rest } = input
  return { ...rest, messages: id }
}

function rangesOf(input: ReadInput, number: number | undefined, versions: MessageVersion[]): Range[] {
  if (input.messages !== undefined) {
    const ranges = readIndices(input.messages)
    if (versions.some((version) => isInRanges(ranges, version.number))) return ranges
    throw new DexError(
      "no_message",
      `There is no message ${input.messages} in this conversation; they are numbered to ${versions.at(-1)?.number ?? 0}.`,
    )
  }
  if (number !== undefined) return rangesOf({ ...input, messages: String(number) }, undefined, versions)
  throw new DexError(
    "usage",
    "Which messages? dex read <conversation> 5, 5-10 or 1,5,10-15. `dex scan` shows what there is.",
  )
}

type Entry = ReturnType<typeof entryOf> & { cut?: { from: number; to: number; of: number } }

function entryOf(message: StoredMessage) {
  const parts = message.parts.map((part): ReadPart => {
    if (part.type === "image") {
      const { sha256: _, ...image } = part
      return image
    }
    if (part.type !== "tool_result" || !part.hunks) return part
    const { hunks, ...result } = part
    return { ...result, patch: patchText(hunks) }
  })
  return {
    index: message.number,
    role: message.role,
    origin: originsText(message),
    ...(message.at !== undefined && { date: isoDate(message.at) }),
    ...(message.model !== undefined && { model: message.model }),
    ...messageState(message),
    tokens: tokensOf(charactersOf(parts)),
    parts,
    ...(message.effects.length > 0 && { effects: message.effects }),
    ...(message.usage && { usage: message.usage }),
  }
}

function charactersOf(parts: ReadPart[]): number {
  return parts.reduce((sum, part) => sum + part.text.length + (part.patch?.length ?? 0), 0)
}

/** The message from one character on to before another, counted over its texts and patches in their order. */
function sliced({ effects: _, usage: __, ...entry }: Entry, from: number, to = Number.MAX_SAFE_INTEGER): Entry {
  const of = charactersOf(entry.parts)
  const end = onWholeCharacter(entry.parts, Math.min(to, of), from)
  let at = 0
  const take = (text: string) => {
    const piece = text.slice(Math.max(0, from - at), Math.max(0, end - at))
    at += text.length
    return piece
  }
  const parts = entry.parts.flatMap((part) => {
    const text = take(part.text)
    const patch = part.patch === undefined ? "" : take(part.patch)
    if (text === "" && patch === "") return []
    const { patch: _, ...rest } = part
    return [{ ...rest, text, ...(patch !== "" && { patch }) }]
  })
  return { ...entry, parts, cut: { from: Math.min(from, of), to: end, of } }
}

/** Not between the halves of a character, unless nothing else is left. */
function onWholeCharacter(parts: ReadPart[], end: number, from: number): number {
  let at = 0
  for (const text of parts.flatMap((part) => [part.text, part.patch ?? ""])) {
    if (end > at && end < at + text.length && /[\ud800-\udbff]/.test(text[end - at - 1]!))
      return end - 1 > from ? end - 1 : end
    at += text.length
  }
  return end
}

function goOn(row: ConversationRow, input: ReadInput, rest: StoredMessage[], fromChar: number | undefined): string {
  return commandLine("read", [row, formatIndices(rest.map(({ number }) => number))], {
    "from-char": fromChar,
    "max-tokens": input.max_tokens,
    show: input.show,
    hide: input.hide,
  })
}
