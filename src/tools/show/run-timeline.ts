import { DexError } from "../../core/error.ts"
import { conversationRefOf, formatRef, isSameConversation, type Ref } from "../../core/ref.ts"
import { withSize } from "../../render/budget.ts"
import { fillLines, type LineRange } from "../../render/fill.ts"
import { DEFAULT_TOKENS_PER_MSG } from "../../render/limits.ts"
import { cuttableLines, type LineEntry, lineText } from "../../render/line.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { projectsHiddenFromCaller, resolveSession } from "../resolve.ts"
import { formLine, headOf, rootsOf } from "../view.ts"
import type { TimelineInput } from "./forms.ts"
import { limitOptions, noMessageError, openConversation, selectParts } from "./reading.ts"

type PlacedMessage = { row: ConversationRow; message: StoredMessage }
/** The messages in the window. `middle` is the position of the requested message, or of the first one after its time. */
type TimelineWindow = {
  places: PlacedMessage[]
  middle: number
  more_before: boolean
  more_after: boolean
  hidden?: number
}

export async function run(dex: Dex, input: TimelineInput) {
  const { id, session, max_tokens } = input
  const { row, number, store } = await openConversation(dex, { id, session: id === undefined ? session : undefined })
  const anchor = await messageAt(store, row, number)
  const scope = id === undefined ? row.ref : await resolveSession(dex, session)
  const window =
    session === "all"
      ? await projectMessagesAround(store, row, anchor, input)
      : await messagesAround(store, scope ?? row.ref, row, anchor, input)
  const labelled = await withLabels(store, window.places, row, anchor, await projectsHiddenFromCaller(dex))
  const lines = cuttableLines(labelled, max_tokens, DEFAULT_TOKENS_PER_MSG)
  const answer = ({ from, to }: LineRange, tokensPerMsg: number) => {
    const others = otherConversations(window.places.slice(from, to), row)
    const leftOut = lines.length - (to - from)
    const continueFrom = (position: number, before: number, after: number) =>
      continuation(dex, window.places[position]!, input, { before, after })
    return {
      ...headOf(row),
      message_index: anchor.number,
      lines: lines.slice(from, to).map((line) => lineText(line, tokensPerMsg)),
      others: others.length > 0 ? others : undefined,
      has_more_before: window.more_before || from > 0,
      has_more_after: window.more_after || to < lines.length,
      hidden_parts: window.hidden,
      truncated:
        leftOut > 0
          ? {
              messages_left_out: leftOut,
              continue_before: from > 0 ? continueFrom(from, from, 0) : undefined,
              continue_with: to < lines.length ? continueFrom(to - 1, 0, lines.length - to) : undefined,
            }
          : undefined,
    }
  }
  if (max_tokens === undefined) return withSize(answer({ from: 0, to: lines.length }, DEFAULT_TOKENS_PER_MSG))
  return fillLines(lines, max_tokens, (count) => spanOf(count, window.middle, lines.length), answer)
}

/** The range of `n` places around the middle one. It is moved if there are too few places on one side. */
function spanOf(n: number, middle: number, count: number): LineRange {
  const from = Math.max(0, Math.min(middle - Math.floor((n - 1) / 2), count - n))
  return { from, to: Math.min(count, from + n) }
}

function continuation(
  dex: Dex,
  { row, message }: PlacedMessage,
  input: TimelineInput,
  sides: { before: number; after: number },
): string {
  return formLine(dex, "timeline", [formatRef({ ...row.ref, number: message.number })], {
    ...sides,
    session: input.session === "all" ? "all" : undefined,
    ...limitOptions(input),
  })
}

async function messageAt(
  store: HistoryReader,
  row: ConversationRow,
  number: number | undefined,
): Promise<StoredMessage> {
  const versions = await store.versions(row.ref)
  const wantedNumber = number ?? versions.at(-1)?.number
  const [message] = wantedNumber === undefined ? [] : await store.messages(row.ref, [wantedNumber])
  if (message) return message
  if (number !== undefined) throw noMessageError(number, versions.at(-1)?.number ?? 0)
  throw new DexError("no_message", "There is no message in this conversation.")
}

/** The messages of one conversation around the anchor, or around its time if the anchor is in another one. */
async function messagesAround(
  store: HistoryReader,
  scope: Ref,
  row: ConversationRow,
  anchor: StoredMessage,
  input: TimelineInput,
): Promise<TimelineWindow> {
  const { before, after } = input
  const isAnchorInScope = isSameConversation(scope, row.ref)
  const scopeRow = isAnchorInScope ? row : ((await store.conversation(scope)) ?? row)
  const allMessages = await store.messages(scope)
  const { messages } = selectParts(allMessages, input)
  const anchorIndex = isAnchorInScope ? messages.findIndex(({ number }) => number === anchor.number) : -1
  const middleIndex =
    anchorIndex === -1 ? messages.findIndex((message) => (message.at ?? 0) > (anchor.at ?? 0)) : anchorIndex
  const middle = middleIndex === -1 ? messages.length : middleIndex
  const from = Math.max(0, middle - before)
  const to = Math.min(messages.length, middle + after + (anchorIndex === -1 ? 0 : 1))
  const visible = messages.slice(from, to)
  const position = (message: StoredMessage | undefined) =>
    allMessages.findIndex(({ number }) => number === message?.number)
  const span = allMessages.slice(position(visible[0]), position(visible.at(-1)) + 1)
  return {
    places: visible.map((message) => ({ row: scopeRow, message })),
    middle: middle - from,
    more_before: from > 0,
    more_after: to < messages.length,
    hidden: visible.length === 0 ? undefined : selectParts(span, input).hidden,
  }
}

/** The messages of all conversations of the project around the anchor's time. */
async function projectMessagesAround(
  store: HistoryReader,
  row: ConversationRow,
  anchor: StoredMessage,
  input: TimelineInput,
): Promise<TimelineWindow> {
  const { before, after } = input
  if (anchor.at === undefined)
    throw new DexError(
      "no_time",
      "That message has no time, so dex does not know what happened around it. Omit --session.",
    )
  // Reads one message more than needed on each side, to find out whether there are more.
  const nearby = await store.around({ ...row.ref, number: anchor.number }, before + 1, after + 1)
  const anchorIndex = nearby.findIndex((candidate) => candidate.id === row.ref.id && candidate.number === anchor.number)
  const visible = nearby.slice(Math.max(0, anchorIndex - before), anchorIndex + after + 1)
  const messages = new Map<string, PlacedMessage>()
  for (const [, members] of Map.groupBy(visible, (messageRef) => formatRef(conversationRefOf(messageRef)))) {
    const memberRow = (await store.conversation(members[0]!)) ?? row
    const numbers = members.map(({ number }) => number)
    for (const message of await store.messages(memberRow.ref, numbers))
      messages.set(formatRef({ ...memberRow.ref, number: message.number }), { row: memberRow, message })
  }
  let hiddenCount = 0
  const places = visible.flatMap((messageRef) => {
    const place = messages.get(formatRef(messageRef))
    const selected = selectParts(place ? [place.message] : [], input)
    hiddenCount += selected.hidden ?? 0
    return selected.messages.map((message) => ({ row: place!.row, message }))
  })
  return {
    places,
    middle: Math.max(
      0,
      places.findIndex((place) => place.message.number === anchor.number && place.row.ref.id === row.ref.id),
    ),
    more_before: anchorIndex > before,
    more_after: nearby.length - anchorIndex - 1 > after,
    hidden: hiddenCount || undefined,
  }
}

/**
 * Labels the requested conversation's messages with their number, and messages of other conversations with a short ref. When a
 * short ref is made unique, conversations of the projects in `except` are ignored.
 */
async function withLabels(
  store: HistoryReader,
  places: PlacedMessage[],
  row: ConversationRow,
  anchor: StoredMessage,
  except: readonly string[],
): Promise<LineEntry[]> {
  const names = new Map<string, string>()
  const entries: LineEntry[] = []
  for (const { row: conversation, message } of places) {
    const name = formatRef(conversation.ref)
    const isAnchorConversation = name === formatRef(row.ref)
    if (!isAnchorConversation && !names.has(name)) names.set(name, await shortName(store, conversation.ref, except))
    const label = isAnchorConversation
      ? `${message.number === anchor.number ? ">" : ""}${message.number}`
      : `${names.get(name)}#${message.number}`
    entries.push({ message, label, roots: rootsOf(conversation) })
  }
  return entries
}

const MIN_PREFIX_LENGTH = 8

async function shortName(store: HistoryReader, ref: Ref, except: readonly string[]): Promise<string> {
  for (let length = MIN_PREFIX_LENGTH; length < ref.id.length; length += 4) {
    const prefix = ref.id.slice(0, length)
    if (/^[\w-]+$/.test(prefix) && (await store.resolve({ prefix }, except)).length === 1) return prefix
  }
  return formatRef(ref)
}

const MAX_TITLE_LENGTH = 80

function otherConversations(places: PlacedMessage[], row: ConversationRow): { id: string; title: string }[] {
  const rows = new Map(places.map(({ row: conversation }) => [formatRef(conversation.ref), conversation]))
  rows.delete(formatRef(row.ref))
  return [...rows].map(([id, conversation]) => ({ id, title: headOf(conversation).title.slice(0, MAX_TITLE_LENGTH) }))
}
