import { DexError } from "../../core/error.ts"
import { formatRef, isSameConversation, type Ref, wholeOf } from "../../core/ref.ts"
import { charactersWithin } from "../../core/tokens.ts"
import { sized } from "../../render/budget.ts"
import { type FieldFilter, readFields, withFields } from "../../render/fields.ts"
import { filled, type LineRange } from "../../render/fill.ts"
import { DEFAULT_TOKENS_PER_MSG, limitOf } from "../../render/limits.ts"
import { type LineEntry, linesOf, lineText } from "../../render/line.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { resolveConversation, resolveSession } from "../resolve.ts"
import { commandLine, headOf, rootsOf } from "../view.ts"

export type TimelineInput = {
  id?: string
  before: number
  after: number
  session?: string
  max_tokens?: number
  show?: string[]
  hide?: string[]
}

/** A message in its conversation. */
type Place = { row: ConversationRow; message: StoredMessage }
/** What stands in the window; `middle` is where the message in question is, or where it would be. */
type Window = { places: Place[]; middle: number; more_before: boolean; more_after: boolean; hidden: number }

export async function run(dex: Dex, input: TimelineInput) {
  const { row, number } = await resolveConversation(dex, {
    ...(input.id !== undefined && { id: input.id }),
    ...(input.id === undefined && input.session !== undefined && { session: input.session }),
  })
  const store = await dex.store()
  const anchor = await messageAt(store, row, number)
  const fields = readFields(input)
  const scope = input.id === undefined ? row.ref : await resolveSession(dex, input.session)
  const window =
    input.session === "all"
      ? await acrossProject(store, row, anchor, input, fields)
      : await within(store, scope ?? row.ref, row, anchor, input, fields)
  const entries = await labelled(store, window.places, row, anchor)
  const most =
    input.max_tokens === undefined ? limitOf("user", DEFAULT_TOKENS_PER_MSG) : charactersWithin(input.max_tokens)
  const lines = linesOf(entries, most)
  const answer = ({ from, to }: LineRange, tokensPerMsg: number) => {
    const others = otherConversations(window.places.slice(from, to), row)
    const leftOut = lines.length - (to - from)
    return {
      ...headOf(row),
      message_index: anchor.number,
      lines: lines.slice(from, to).map((line) => lineText(line, tokensPerMsg)),
      ...(others.length > 0 && { others }),
      has_more_before: window.more_before || from > 0,
      has_more_after: window.more_after || to < lines.length,
      ...(window.hidden > 0 && { hidden_parts: window.hidden }),
      ...(leftOut > 0 && {
        truncated: {
          messages_left_out: leftOut,
          ...(from > 0 && { continue_before: goOn(window.places[from]!, input, { before: from, after: 0 }) }),
          ...(to < lines.length && {
            continue_with: goOn(window.places[to - 1]!, input, { before: 0, after: lines.length - to }),
          }),
        },
      }),
    }
  }
  const all = { from: 0, to: lines.length }
  if (input.max_tokens === undefined) return sized(answer(all, DEFAULT_TOKENS_PER_MSG))
  return filled(lines, input.max_tokens, (count) => spanOf(count, window.middle, lines.length), answer)
}

/** `n` places around the middle one, as many on each side as there are. */
function spanOf(n: number, middle: number, count: number): LineRange {
  const from = Math.max(0, Math.min(middle - Math.floor((n - 1) / 2), count - n))
  return { from, to: Math.min(count, from + n) }
}

function goOn({ row, message }: Place, input: TimelineInput, sides: { before: number; after: number }): string {
  return commandLine("timeline", [formatRef({ ...row.ref, number: message.number })], {
    ...sides,
    session: input.session === "all" ? "all" : undefined,
    "max-tokens": input.max_tokens,
    show: input.show,
    hide: input.hide,
  })
}

async function messageAt(
  store: HistoryReader,
  row: ConversationRow,
  number: number | undefined,
): Promise<StoredMessage> {
  const versions = await store.versions(row.ref)
  const wanted = number ?? versions.at(-1)?.number
  const [message] = wanted === undefined ? [] : await store.messages(row.ref, [wanted])
  if (message) return message
  throw new DexError(
    "no_message",
    number === undefined
      ? "There is no message in this conversation."
      : `There is no message ${number} in this conversation; the last one is ${versions.at(-1)?.number ?? 0}.`,
  )
}

/** The messages of one conversation around the anchor, or around its time where it is another's. */
async function within(
  store: HistoryReader,
  scope: Ref,
  row: ConversationRow,
  anchor: StoredMessage,
  { before, after }: TimelineInput,
  fields: FieldFilter,
): Promise<Window> {
  const own = isSameConversation(scope, row.ref)
  const inside = own ? row : ((await store.conversation(scope)) ?? row)
  const told = await store.messages(scope)
  const { messages } = withFields(told, fields)
  const found = own ? messages.findIndex(({ number }) => number === anchor.number) : -1
  const later = found === -1 ? messages.findIndex((message) => (message.at ?? 0) > (anchor.at ?? 0)) : found
  const middle = later === -1 ? messages.length : later
  const from = Math.max(0, middle - before)
  const to = Math.min(messages.length, middle + after + (found === -1 ? 0 : 1))
  const shown = messages.slice(from, to)
  const position = (message: StoredMessage | undefined) => told.findIndex(({ number }) => number === message?.number)
  const span = told.slice(position(shown[0]), position(shown.at(-1)) + 1)
  return {
    places: shown.map((message) => ({ row: inside, message })),
    middle: middle - from,
    more_before: from > 0,
    more_after: to < messages.length,
    hidden: shown.length === 0 ? 0 : withFields(span, fields).hidden,
  }
}

/** The messages of all conversations of the project around the anchor's time. */
async function acrossProject(
  store: HistoryReader,
  row: ConversationRow,
  anchor: StoredMessage,
  { before, after }: TimelineInput,
  fields: FieldFilter,
): Promise<Window> {
  if (anchor.at === undefined)
    throw new DexError(
      "no_time",
      "That message has no time, so what happened around it is not known. Leave out --session.",
    )
  // One more on each side, to know whether there is more.
  const named = await store.around({ ...row.ref, number: anchor.number }, before + 1, after + 1)
  const at = named.findIndex((one) => one.id === row.ref.id && one.number === anchor.number)
  const shown = named.slice(Math.max(0, at - before), at + after + 1)
  const messages = new Map<string, Place>()
  for (const [, members] of Map.groupBy(shown, (one) => formatRef(wholeOf(one)))) {
    const inside = (await store.conversation(members[0]!)) ?? row
    const numbers = members.map(({ number }) => number)
    for (const message of await store.messages(inside.ref, numbers))
      messages.set(formatRef({ ...inside.ref, number: message.number }), { row: inside, message })
  }
  let hidden = 0
  const places = shown.flatMap((one) => {
    const place = messages.get(formatRef(one))
    const wanted = withFields(place ? [place.message] : [], fields)
    hidden += wanted.hidden
    return wanted.messages.map((message) => ({ row: place!.row, message }))
  })
  return {
    places,
    middle: Math.max(
      0,
      places.findIndex((place) => place.message.number === anchor.number && place.row.ref.id === row.ref.id),
    ),
    more_before: at > before,
    more_after: named.length - at - 1 > after,
    hidden,
  }
}

/** A number is enough within the asked conversation; elsewhere it takes a ref that is accepted everywhere. */
async function labelled(
  store: HistoryReader,
  places: Place[],
  row: ConversationRow,
  anchor: StoredMessage,
): Promise<LineEntry[]> {
  const names = new Map<string, string>()
  const entries: LineEntry[] = []
  for (const { row: inside, message } of places) {
    const whole = formatRef(inside.ref)
    const own = whole === formatRef(row.ref)
    if (!own && !names.has(whole)) names.set(whole, await shortName(store, inside.ref))
    const label = own
      ? `${message.number === anchor.number ? ">" : ""}${message.number}`
      : `${names.get(whole)}#${message.number}`
    entries.push({ message, label, roots: rootsOf(inside) })
  }
  return entries
}

const SHORTEST = 8

async function shortName(store: HistoryReader, ref: Ref): Promise<string> {
  for (let length = SHORTEST; length < ref.id.length; length += 4) {
    const prefix = ref.id.slice(0, length)
    if (/^[\w-]+$/.test(prefix) && (await store.resolve({ prefix })).length === 1) return prefix
  }
  return formatRef(ref)
}

const LONGEST_TITLE = 80

function otherConversations(places: Place[], row: ConversationRow): { id: string; title: string }[] {
  const rows = new Map(places.map(({ row: inside }) => [formatRef(inside.ref), inside]))
  rows.delete(formatRef(row.ref))
  return [...rows].map(([id, inside]) => ({ id, title: headOf(inside).title.slice(0, LONGEST_TITLE) }))
}
