import { isoDate } from "../core/dates.ts"
import { DexError } from "../core/error.ts"
import { type Format, messageText, messageTokens } from "../core/format.ts"
import { formatRef } from "../core/ref.ts"
import { estimateTokens } from "../core/tokens.ts"
import type { ConversationRow, StoredMessage } from "../store/store.ts"
import type { Dex } from "./context.ts"
import { conversationOf } from "./fields.ts"
import { resolveRef } from "./resolve.ts"

export type GetInput = {
  ids: string[]
  format: Format
  expand?: { message_index: number; before: number; after: number }
  max_tokens?: number
}

const MOST_FILES = 50
const AROUND = 2

export async function run(dex: Dex, input: GetInput) {
  if (input.ids.length === 0)
    throw new DexError("no_ref", "Which conversation? Give a ref or a row number: dex show 2. `dex list` shows them.")
  const conversations = []
  let budget = input.max_tokens ?? Number.POSITIVE_INFINITY
  for (const id of input.ids) {
    const { row, number } = await resolveRef(dex, id)
    const expand =
      input.expand ?? (number === undefined ? undefined : { message_index: number, before: AROUND, after: AROUND })
    const told = await tell(dex, row, input.format, expand, budget)
    conversations.push(told)
    budget -= told.total_tokens
  }
  return { conversations }
}

async function tell(dex: Dex, row: ConversationRow, format: Format, expand: GetInput["expand"], budget: number) {
  const store = await dex.store()
  const all = await store.messages(row.ref)
  const window = expand ? windowAround(all, expand) : { from: 0, to: all.length }
  const wanted = all.slice(window.from, window.to)
  const fitting = fitInto(wanted, format, budget)
  const { message_count: _, estimated_tokens: __, ...head } = conversationOf(row)
  const next = fitting.cut === undefined ? undefined : wanted[fitting.cut]!.number
  return {
    ...head,
    ...(row.parent && { parent: formatRef({ source: row.ref.source, id: row.parent.id }) }),
    ...(row.fork_of !== undefined && { fork_of: formatRef({ source: row.ref.source, id: row.fork_of }) }),
    ...(row.archived && { archived: true }),
    messages: fitting.messages,
    files: (await store.filesOf(row.ref)).slice(0, MOST_FILES),
    total_tokens: fitting.tokens,
    ...(expand && { has_more_before: window.from > 0, has_more_after: window.to < all.length }),
    ...(next !== undefined && {
      truncated: {
        messages_left_out: wanted.length - fitting.cut!,
        next_message_index: next,
        continue_with: `dex show ${formatRef(row.ref)} --format ${format} --expand ${next} --before 0 --after ${wanted.length - fitting.cut!}`,
      },
    }),
  }
}

function windowAround(all: StoredMessage[], expand: NonNullable<GetInput["expand"]>): { from: number; to: number } {
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
}

/** As many messages from the beginning as the budget holds; `cut` is where it ended. Never more than the budget. */
function fitInto(
  messages: StoredMessage[],
  format: Format,
  budget: number,
): { messages: Shown[]; tokens: number; cut?: number } {
  const shown: Shown[] = []
  let tokens = 0
  for (const [i, message] of messages.entries()) {
    const content = messageText(message, format)
    if (content === "") continue // user_only: nothing of the person's in it
    const cost = estimateTokens(content)
    if (tokens + cost > budget) return { messages: shown, tokens, cut: i }
    tokens += cost
    shown.push({
      index: message.number,
      role: message.role,
      origin: [...new Set(message.parts.map((part) => part.origin))].join(", "),
      ...(message.at !== undefined && { date: isoDate(message.at) }),
      content,
      tokens: format === "outline" ? messageTokens(message, "stripped") : cost,
      ...stateOf(message),
    })
  }
  return { messages: shown, tokens }
}

function stateOf(message: StoredMessage): { state?: "abandoned" | "superseded" | "copied" } {
  if (message.superseded) return { state: "superseded" }
  if (message.abandoned) return { state: "abandoned" }
  return message.copied ? { state: "copied" } : {}
}
