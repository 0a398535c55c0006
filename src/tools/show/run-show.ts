import { DexError } from "../../core/error.ts"
import { type Format, messageText, messageTokens, outlineOf } from "../../core/format.ts"
import { formatRef, siblingRef } from "../../core/ref.ts"
import { charactersWithin, estimateTokens } from "../../core/tokens.ts"
import { fitItemsOrCut } from "../../render/budget.ts"
import { type FieldFilter, isChosen, readFields } from "../../render/fields.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { withSubsections } from "../docs/sections.ts"
import { commandLine, formLine, headOf, messageState, rootsOf } from "../view.ts"
import { limitOptions, messageFacts, noMessageError, openConversation, selectParts } from "./reading.ts"
import type { ShowInput } from "./show.ts"

const MAX_FILES = 50
/** The share of the token budget that file names may use. */
const FILES_SHARE = 0.1
const MESSAGES_AROUND = 2

export async function run(dex: Dex, input: ShowInput) {
  const ids = input.ids.length === 0 && input.session !== undefined ? [undefined] : input.ids
  if (ids.length === 0)
    throw new DexError("no_ref", "Which conversation? Give a ref or a row number: dex show 2. `dex list` shows them.")
  if (input.summary) return (await import("./run-summary.ts")).summarize(dex, ids, input)
  const contents: ConversationContent[] = []
  for (const id of ids) contents.push(await readContent(dex, id, input))
  return fitContents(dex, contents, input)
}

/** The contents of a conversation before they are cut to the budget. */
type ConversationContent = {
  row: ConversationRow
  /** The ref, with the message number if one was given. */
  name: string
  head: ReturnType<typeof familyHead>
  files: string[]
  messages: ShownMessage[]
  /** For each shown message, the number of messages from that message to the end of the requested range. */
  remaining: number[]
  hidden?: number
  sides: { has_more_before?: boolean; has_more_after?: boolean }
}

async function readContent(dex: Dex, id: string | undefined, input: ShowInput): Promise<ConversationContent> {
  const { row, number, store } = await openConversation(dex, { id, session: input.session })
  const allMessages = await store.messages(row.ref)
  const expand =
    requestedWindow(input, number) ?? (number === undefined ? undefined : defaultWindow(row, allMessages, number))
  const window = expand ? windowAround(allMessages, expand) : { from: 0, to: allMessages.length }
  const windowMessages = allMessages.slice(window.from, window.to)
  const fields = readFields(input)
  const { messages, hidden } = selectParts(windowMessages, input)
  const formatted = messages
    .map((message) => toShownMessage(message, input.format, fields, rootsOf(row)))
    .filter(({ content }) => content !== "")
  const positions = new Map(windowMessages.map(({ number }, i) => [number, i]))
  return {
    row,
    name: formatRef(number === undefined ? row.ref : { ...row.ref, number }),
    head: familyHead(row),
    files: filesWithin(await store.filesOf(row.ref), input.max_tokens),
    messages: formatted,
    remaining: formatted.map(({ index }) => windowMessages.length - positions.get(index)!),
    hidden,
    sides: expand ? { has_more_before: window.from > 0, has_more_after: window.to < allMessages.length } : {},
  }
}

type Window = { message_index: number; before: number; after: number }

/** The requested window around the message that `expand` or the ref names. */
function requestedWindow({ expand }: ShowInput, number: number | undefined): Window | undefined {
  if (expand === undefined) return undefined
  const message_index = expand.message_index ?? number
  if (message_index !== undefined) return { ...expand, message_index }
  throw new DexError("usage", "Before or after which message? Name it: dex show <id>#12 --before 5, or --expand 12.")
}

/** The window if none was requested: a section with its subsections, or a message with the messages around it. */
function defaultWindow({ kind }: ConversationRow, allMessages: StoredMessage[], number: number) {
  const around = { message_index: number, before: MESSAGES_AROUND, after: MESSAGES_AROUND }
  return kind === "document" ? { ...around, before: 0, after: withSubsections(allMessages, number).length - 1 } : around
}

export function familyHead(row: ConversationRow) {
  return {
    ...headOf(row),
    parent: row.parent && formatRef(siblingRef(row.ref, row.parent.id)),
    fork_of: row.fork_of === undefined ? undefined : formatRef(siblingRef(row.ref, row.fork_of)),
    archived: row.archived || undefined,
    imported_from: row.imported_from,
  }
}

function filesWithin(files: string[], maxTokens: number | undefined): string[] {
  let charsLeft = maxTokens === undefined ? Number.POSITIVE_INFINITY : FILES_SHARE * charactersWithin(maxTokens)
  return files.slice(0, MAX_FILES).filter((file) => {
    charsLeft -= file.length + 4
    return charsLeft >= 0
  })
}

function windowAround(allMessages: StoredMessage[], expand: Window): { from: number; to: number } {
  const index = allMessages.findIndex((message) => message.number === expand.message_index)
  if (index === -1) {
    const last = allMessages.reduce((highest, message) => Math.max(highest, message.number), 0)
    throw noMessageError(expand.message_index, last)
  }
  return { from: Math.max(0, index - expand.before), to: Math.min(allMessages.length, index + expand.after + 1) }
}

type ShownMessage = ReturnType<typeof messageFacts> & {
  content: string
  tokens: number
  state?: "abandoned" | "superseded" | "copied"
  cut?: { characters_left_out: number; continue_with: string }
}

/** Formats a message. Its content is empty if the format shows nothing of it, such as user_only for an agent's message. */
function toShownMessage(message: StoredMessage, format: Format, fields: FieldFilter, roots: string[]): ShownMessage {
  const content =
    format === "outline" ? outlineOf(message, roots) : messageText(message, format, (part) => isChosen(part, fields))
  return {
    ...messageFacts(message),
    content,
    tokens: format === "outline" ? messageTokens(message, "stripped") : estimateTokens(content),
    ...messageState(message),
  }
}

/** The messages that fit into the budget, starting with the first one of the first conversation. */
function fitContents(dex: Dex, contents: ConversationContent[], input: ShowInput) {
  const items = contents.flatMap(({ messages }, conversation) => [
    { conversation, message: -1, minChars: 1 },
    ...messages.map(({ content }, message) => ({ conversation, message, minChars: content.length })),
  ])
  const build = (count: number) => {
    const last = items[count - 1]
    if (last === undefined) return buildAnswer(contents, 0, 0, input)
    // If none of a conversation's messages fits, the conversation is listed as left out instead of being shown empty.
    const hasNoMessage =
      last.message === -1 && last.conversation > 0 && contents[last.conversation]!.messages.length > 0
    return hasNoMessage
      ? buildAnswer(contents, last.conversation, Number.POSITIVE_INFINITY, input)
      : buildAnswer(contents, last.conversation + 1, last.message + 1, input)
  }
  const [first, ...others] = contents
  const firstLength = first!.messages[0]?.content.length
  const beginning =
    firstLength === undefined
      ? undefined
      : {
          from: 1,
          to: firstLength,
          build: (length: number) => buildAnswer([withFirstCut(dex, first!, length, input), ...others], 1, 1, input),
        }
  return fitItemsOrCut(items.length, build, input.max_tokens, (i) => items[i]!.minChars, beginning ? 2 : 1, beginning)
}

function withFirstCut(dex: Dex, content: ConversationContent, length: number, input: ShowInput): ConversationContent {
  const [first, ...rest] = content.messages
  const beginning = first!.content.slice(0, length).replace(/[\ud800-\udbff]$/, "")
  const cut = {
    characters_left_out: first!.content.length - beginning.length,
    continue_with: formLine(dex, "read", [content.row, String(first!.index)], { "max-tokens": input.max_tokens }),
  }
  return { ...content, files: [], messages: [{ ...first!, content: `${beginning}…`, cut }, ...rest] }
}

/** An answer with the first conversations. The last of them has only its first `messageCount` messages. */
function buildAnswer(
  contents: ConversationContent[],
  conversationCount: number,
  messageCount: number,
  input: ShowInput,
) {
  const { format } = input
  const conversations = contents
    .slice(0, conversationCount)
    .map(({ row, head, files, messages, remaining, hidden, sides }, i) => {
      const shownMessages =
        i === conversationCount - 1 && messageCount < messages.length ? messages.slice(0, messageCount) : messages
      const next = messages[shownMessages.length]
      const options = { format, expand: next?.index, before: 0, after: remaining[shownMessages.length]! - 1 }
      return {
        ...head,
        messages: shownMessages,
        files,
        total_tokens: shownMessages.reduce((sum, message) => sum + estimateTokens(message.content), 0),
        ...sides,
        hidden_parts: hidden,
        truncated: next && {
          messages_left_out: messages.length - shownMessages.length,
          next_message_index: next.index,
          continue_with: commandLine("show", [row], { ...options, ...limitOptions(input) }),
        },
      }
    })
  const names = contents.slice(conversationCount).map(({ name }) => name)
  const { message_index: expand, before, after } = input.expand ?? {}
  const continue_with = commandLine("show", names, { format, expand, before, after, ...limitOptions(input) })
  return { conversations, left_out: names.length > 0 ? { conversations: names.length, continue_with } : undefined }
}
