import type { Part } from "../../core/conversation.ts"
import { DexError } from "../../core/error.ts"
import { tokensForChars } from "../../core/tokens.ts"
import { fitItemsOrCut } from "../../render/budget.ts"
import { formatIndices, isInRanges, type Range, readIndices } from "../../render/indices.ts"
import { patchText } from "../../render/patch.ts"
import type { MessageVersion, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { formLine, headOf, messageState } from "../view.ts"
import type { ReadInput } from "./forms.ts"
import { limitOptions, messageFacts, openConversation, selectParts } from "./reading.ts"

/** A part of a message as this tool returns it: with a patch instead of hunks, and without the hash of an image. */
export type ReadPart = Omit<Part, "hunks" | "sha256"> & { patch?: string }

export async function run(dex: Dex, rawInput: ReadInput) {
  const input = dex.hasForms ? rawInput : withSession(rawInput)
  const { row, number, store } = await openConversation(dex, input)
  const versions = await store.versions(row.ref)
  const ranges = rangesOf(dex, input, number, versions)
  const numbers = versions.map((version) => version.number).filter((n) => isInRanges(ranges, n))
  const stored = await store.messages(row.ref, numbers)
  const storedNumbers = stored.map((message) => message.number)
  const { messages, hidden } = selectParts(stored, input)
  const missingNumbers = ranges.filter(({ from, to }) => from === to && !numbers.includes(from)).map(({ from }) => from)
  const complete = messages.map(entryOf)
  // `from_char` continues a message that was cut, so the text that was shown before is left out.
  const entries = complete.map((entry, i) =>
    i === 0 && input.from_char > 0 ? sliceEntry(entry, input.from_char) : entry,
  )
  const buildAnswer = (shown: Entry[], next: { index: number; from_char?: number } | undefined, leftOut: number) => ({
    ...headOf(row),
    messages: shown,
    not_found: missingNumbers.length > 0 ? formatIndices(missingNumbers) : undefined,
    hidden_parts: hidden,
    truncated: next && {
      messages_left_out: leftOut,
      next_message_index: next.index,
      continue_with: formLine(
        dex,
        "read",
        [row, formatIndices(storedNumbers.slice(storedNumbers.indexOf(next.index)))],
        {
          "from-char": next.from_char,
          ...limitOptions(input),
        },
      ),
    },
  })
  const build = (count: number) =>
    buildAnswer(
      entries.slice(0, count),
      count < entries.length ? { index: entries[count]!.index } : undefined,
      entries.length - count,
    )
  const [first, second] = complete
  const length = first ? charactersOf(first.parts) : 0
  const from = Math.min(input.from_char, length)
  const beginning = first && {
    from: from + 1,
    to: Math.max(length, from + 1),
    build: (to: number) => {
      const part = sliceEntry(first, input.from_char, to)
      const next = part.cut!.to < length ? { index: first.index, from_char: part.cut!.to } : undefined
      const secondMessage = second && { index: second.index }
      return buildAnswer([part], next ?? secondMessage, entries.length - (next ? 0 : 1))
    },
  }
  const charactersAt = (i: number) => charactersOf(entries[i]!.parts)
  return fitItemsOrCut(entries.length, build, input.max_tokens, charactersAt, Math.min(1, entries.length), beginning)
}

/** Handles `dex read 5-10 --session current`: with a session, a single word is a range of messages. */
function withSession(input: ReadInput): ReadInput {
  const hasSession = input.session !== undefined && input.session !== "all"
  if (!hasSession || input.messages !== undefined || input.id === undefined) return input
  const { id, ...rest } = input
  return { ...rest, messages: id }
}

function rangesOf(dex: Dex, input: ReadInput, number: number | undefined, versions: MessageVersion[]): Range[] {
  if (input.messages !== undefined) {
    const ranges = readIndices(input.messages)
    if (versions.some((version) => isInRanges(ranges, version.number))) return ranges
    throw new DexError(
      "no_message",
      `There is no message ${input.messages} in this conversation; the last one is ${versions.at(-1)?.number ?? 0}.`,
    )
  }
  if (number !== undefined) return rangesOf(dex, { ...input, messages: String(number) }, undefined, versions)
  throw new DexError(
    "usage",
    dex.hasForms
      ? "Which messages? dex show <conversation> --messages 5, 5-10 or 1,5,10-15. `dex show <conversation> --lines` lists them."
      : "Which messages? dex read <conversation> 5, 5-10 or 1,5,10-15. `dex scan` lists them.",
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
    ...messageFacts(message),
    model: message.model,
    ...messageState(message),
    tokens: tokensForChars(charactersOf(parts)),
    parts,
    effects: message.effects.length > 0 ? message.effects : undefined,
    usage: message.usage,
  }
}

function charactersOf(parts: ReadPart[]): number {
  return parts.reduce((sum, part) => sum + part.text.length + (part.patch?.length ?? 0), 0)
}

/** Cuts a message to the characters from `from` up to `to`. They are counted over its texts and patches in order. */
function sliceEntry(entry: Entry, from: number, to = Number.MAX_SAFE_INTEGER): Entry {
  const total = charactersOf(entry.parts)
  const end = endOfCharacter(entry.parts, Math.min(to, total), from)
  let offset = 0
  const sliceText = (text: string) => {
    const piece = text.slice(Math.max(0, from - offset), Math.max(0, end - offset))
    offset += text.length
    return piece
  }
  const parts = entry.parts.flatMap((part) => {
    const text = sliceText(part.text)
    const patch = part.patch === undefined ? "" : sliceText(part.patch)
    if (text === "" && patch === "") return []
    return [{ ...part, text, patch: patch === "" ? undefined : patch }]
  })
  return {
    ...entry,
    parts,
    effects: undefined,
    usage: undefined,
    cut: { from: Math.min(from, total), to: end, of: total },
  }
}

/** Returns `end`, or one less if that would split a surrogate pair. If nothing would be left, the pair is split. */
function endOfCharacter(parts: ReadPart[], end: number, from: number): number {
  let at = 0
  for (const text of parts.flatMap((part) => [part.text, part.patch ?? ""])) {
    if (end > at && end < at + text.length && /[\ud800-\udbff]/.test(text[end - at - 1]!))
      return end - 1 > from ? end - 1 : end
    at += text.length
  }
  return end
}
