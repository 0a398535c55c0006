import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { type Format, messageText, messageTokens, outlineOf } from "../../core/format.ts"
import { besideOf, formatRef } from "../../core/ref.ts"
import { charactersWithin, estimateTokens } from "../../core/tokens.ts"
import { fitted, largest, sized, tooSmall } from "../../render/budget.ts"
import { type FieldFilter, isChosen, readFields, withFields } from "../../render/fields.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { withSubsections } from "../docs/sections.ts"
import { resolveConversation } from "../resolve.ts"
import { commandLine, headOf, messageState, originsText, rootsOf } from "../view.ts"

export type GetInput = {
  ids: string[]
  format: Format
  expand?: { message_index?: number; before: number; after: number }
  max_tokens?: number
  show?: string[]
  hide?: string[]
  session?: string
}

const MOST_FILES = 50
/** Of a budget, what the names of files may take. */
const FILES_SHARE = 0.1
const AROUND = 2

export async function run(dex: Dex, input: GetInput) {
  const ids = input.ids.length === 0 && input.session !== undefined ? [undefined] : input.ids
  if (ids.length === 0)
    throw new DexError("no_ref", "Which conversation? Give a ref or a row number: dex show 2. `dex list` shows them.")
  const told: ConversationContent[] = []
  for (const id of ids) {
    const { row, number } = await resolveConversation(dex, {
      ...(id !== undefined && { id }),
      ...(input.session !== undefined && { session: input.session }),
    })
    told.push(await readContent(dex, row, number, input))
  }
  return inBudget(told, input)
}

/** What there is to say of a conversation, before anything is cut. */
type ConversationContent = {
  row: ConversationRow
  /** The ref, with its message where one was named. */
  name: string
  head: ReturnType<typeof familyHead>
  files: string[]
  messages: Shown[]
  /** How many messages there are from each shown one to the end of what was asked for. */
  remaining: number[]
  hidden: number
  sides: { has_more_before?: boolean; has_more_after?: boolean }
}

async function readContent(
  dex: Dex,
  row: ConversationRow,
  number: number | undefined,
  input: GetInput,
): Promise<ConversationContent> {
  const store = await dex.store()
  const all = await store.messages(row.ref)
  const expand = windowAskedFor(input, number) ?? (number === undefined ? undefined : ownWindow(row, all, number))
  const window = expand ? windowAround(all, expand) : { from: 0, to: all.length }
  const wanted = all.slice(window.from, window.to)
  const fields = readFields(input)
  const { messages, hidden } = withFields(wanted, fields)
  const shown = messages
    .map((message) => shownOf(message, input.format, fields, rootsOf(row)))
    .filter(({ content }) => content !== "")
  const positions = new Map(wanted.map(({ number }, i) => [number, i]))
  return {
    row,
    name: formatRef(number === undefined ? row.ref : { ...row.ref, number }),
    head: familyHead(row),
    files: someFiles(await store.filesOf(row.ref), input.max_tokens),
    messages: shown,
    remaining: shown.map(({ index }) => wanted.length - positions.get(index)!),
    hidden,
    sides: expand ? { has_more_before: window.from > 0, has_more_after: window.to < all.length } : {},
  }
}

type Window = { message_index: number; before: number; after: number }

/** The window that was asked for, around the message that it names, or the ref does. */
function windowAskedFor({ expand }: GetInput, number: number | undefined): Window | undefined {
  if (expand === undefined) return undefined
  const message_index = expand.message_index ?? number
  if (message_index !== undefined) return { ...expand, message_index }
  throw new DexError("usage", "Before or after which message? Name it: dex show <id>#12 --before 5, or --expand 12.")
}

/** A section is read with those below it; a message with what was said around it. */
function ownWindow({ kind }: ConversationRow, all: StoredMessage[], number: number) {
  const around = { message_index: number, before: AROUND, after: AROUND }
  return kind === "document" ? { ...around, before: 0, after: withSubsections(all, number).length - 1 } : around
}

function familyHead(row: ConversationRow) {
  return {
    ...headOf(row),
    ...(row.parent && { parent: formatRef(besideOf(row.ref, row.parent.id)) }),
    ...(row.fork_of !== undefined && { fork_of: formatRef(besideOf(row.ref, row.fork_of)) }),
    ...(row.archived && { archived: true }),
  }
}

function someFiles(files: string[], maxTokens: number | undefined): string[] {
  let room = maxTokens === undefined ? Number.POSITIVE_INFINITY : FILES_SHARE * charactersWithin(maxTokens)
  return files.slice(0, MOST_FILES).filter((file) => {
    room -= file.length + 4
    return room >= 0
  })
}

function windowAround(all: StoredMessage[], expand: Window): { from: number; to: number } {
  const at = all.findIndex((message) => message.number === expand.message_index)
  if (at === -1) {
    const last = all.reduce((most, message) => Math.max(most, message.number), 0)
    throw new DexError(
      "no_message",
      `There is no message ${expand.message_index} in this conversation; the last one is ${last}.`,
    )
  }
  return { from: Math.max(0, at - expand.before), to: Math.min(all.length, at + expand.after + 1) }
}

type Shown = {
  index: number
  role: string
  origin: string
  date?: string
  content: string
  tokens: number
  state?: "abandoned" | "superseded" | "copied"
  cut?: { characters_left_out: number; continue_with: string }
}

/** The content is empty where the format shows nothing of it: user_only, and no person spoke. */
function shownOf(message: StoredMessage, format: Format, fields: FieldFilter, roots: string[]): Shown {
  const content =
    format === "outline" ? outlineOf(message, roots) : messageText(message, format, (part) => isChosen(part, fields))
  return {
    index: message.number,
    role: message.role,
    origin: originsText(message),
    ...(message.at !== undefined && { date: isoDate(message.at) }),
    content,
    tokens: format === "outline" ? messageTokens(message, "stripped") : estimateTokens(content),
    ...messageState(message),
  }
}

/** As many messages from the first conversation's first one on as the budget holds. */
function inBudget(told: ConversationContent[], input: GetInput) {
  const items = told.flatMap(({ messages }, conversation) => [
    { conversation, message: -1, least: 1 },
    ...messages.map(({ content }, message) => ({ conversation, message, least: content.length })),
  ])
  const build = (kept: number) => {
    const last = items[kept - 1]
    // A conversation of which no message fits is named as left out, not shown empty.
    const none = last?.message === -1 && last.conversation > 0 && told[last.conversation]!.messages.length > 0
    if (last === undefined) return answer(told, 0, 0, input)
    return none
      ? answer(told, last.conversation, Number.POSITIVE_INFINITY, input)
      : answer(told, last.conversation + 1, last.message + 1, input)
  }
  const fit = fitted(items.length, build, input.max_tokens, (i) => items[i]!.least)
  const [first, ...others] = told
  const longest = first!.messages[0]?.content.length
  if (fit && (fit.kept > 1 || (fit.kept === 1 && longest === undefined))) return fit.answer
  if (longest === undefined) throw tooSmall(input.max_tokens!, build(1))
  const cut = (length: number) => sized(answer([withFirstCut(first!, length, input), ...others], 1, 1, input))
  const length = largest(1, longest, (n) => cut(n).estimated_tokens <= input.max_tokens!)
  if (length === undefined) throw tooSmall(input.max_tokens!, cut(1))
  return cut(length)
}

function withFirstCut(told: ConversationContent, length: number, input: GetInput): ConversationContent {
  const [first, ...rest] = told.messages
  const kept = first!.content.slice(0, length).replace(/[\ud800-\udbff]$/, "")
  const cut = {
    characters_left_out: first!.content.length - kept.length,
    continue_with: commandLine("read", [told.row, String(first!.index)], { "max-tokens": input.max_tokens }),
  }
  return { ...told, files: [], messages: [{ ...first!, content: `${kept}…`, cut }, ...rest] }
}

/** The first `shown` conversations, and of the last of these the first `kept` messages. */
function answer(told: ConversationContent[], shown: number, kept: number, input: GetInput) {
  const flags = { "max-tokens": input.max_tokens, show: input.show, hide: input.hide }
  const conversations = told.slice(0, shown).map(({ row, head, files, messages, remaining, hidden, sides }, i) => {
    const given = i === shown - 1 && kept < messages.length ? messages.slice(0, kept) : messages
    const next = messages[given.length]
    return {
      ...head,
      messages: given,
      files,
      total_tokens: given.reduce((sum, message) => sum + estimateTokens(message.content), 0),
      ...sides,
      ...(hidden > 0 && { hidden_parts: hidden }),
      ...(next && {
        truncated: {
          messages_left_out: messages.length - given.length,
          next_message_index: next.index,
          continue_with: commandLine("show", [row], {
            format: input.format,
            expand: next.index,
            before: 0,
            after: remaining[given.length]! - 1,
            ...flags,
          }),
        },
      }),
    }
  })
  const others = told.slice(shown)
  return {
    conversations,
    ...(others.length > 0 && {
      left_out: {
        conversations: others.length,
        continue_with: commandLine(
          "show",
          others.map(({ name }) => name),
          {
            format: input.format,
            expand: input.expand?.message_index,
            before: input.expand?.before,
            after: input.expand?.after,
            ...flags,
          },
        ),
      },
    }),
  }
}
