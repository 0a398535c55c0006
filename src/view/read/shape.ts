import type { Role } from "../../core/conversation.ts"
import { messageText } from "../../core/format.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import type { HistoryReader, StoredMessage } from "../../store/history/store.ts"
import { testCommand } from "../../suggest/test-runs/commands.ts"
import { moneyFor, totalMoney } from "../../usage/money.ts"
import type { PriceBook } from "../../usage/price-of.ts"
import { spentIn, tokensIn } from "../../usage/spending.ts"

export type Mark = "edit" | "failed" | "commit" | "summary"
export type ChangedFile = { path: string; added: number; removed: number; number: number; isRead: boolean }

/** What there is in a conversation, without its texts: enough to find one's way, and to show any page of it. */
export type ConversationShape = {
  /** The numbers of its messages, in order, and the version of each. */
  versions: Map<number, number>
  prompts: { number: number; text: string; at?: number }[]
  marks: { number: number; mark: Mark; text: string }[]
  /** In which message a call was made, and in which it was answered. */
  calls: Map<string, { madeIn?: number; answeredIn?: number }>
  files: Map<string, ChangedFile>
  commands: { number: number; command: string; isTest: boolean; failed?: boolean }[]
  made: { number: number; name: string; subject: string; isCommit: boolean }[]
  /** What was spent by then, in dollars and tokens. */
  spent: { number: number; cost: number; tokens: number }[]
  unpriced: number
  roles: Partial<Record<Role, number>>
}

const PROMPT_CHARS = 160
const KEPT = 12

/** Of each history, what was read of it. Another one, or one that was opened anew, begins with nothing. */
const readOf = new WeakMap<HistoryReader, Map<string, ConversationShape>>()

/** Reads what there is once for each version of a conversation; of one that only grew, what is new. */
export async function shapeOf(store: HistoryReader, ref: Ref, book: PriceBook): Promise<ConversationShape> {
  const kept = readOf.get(store) ?? new Map<string, ConversationShape>()
  readOf.set(store, kept)
  const name = formatRef(ref)
  const versions = await store.versions(ref)
  const known = kept.get(name)
  const now = new Map(versions.map(({ number, version }) => [number, version]))
  const shape = known && hasOnlyGrown(known, now) ? known : empty()
  const fresh = versions.filter(({ number }) => !shape.versions.has(number)).map(({ number }) => number)
  if (fresh.length > 0 || shape !== known)
    add(shape, now, await store.messages(ref, shape === known ? fresh : undefined), book)
  kept.delete(name)
  kept.set(name, shape)
  for (const [oldest] of kept) if (kept.size > KEPT) kept.delete(oldest)
  return shape
}

function empty(): ConversationShape {
  return {
    versions: new Map(),
    prompts: [],
    marks: [],
    calls: new Map(),
    files: new Map(),
    commands: [],
    made: [],
    spent: [],
    unpriced: 0,
    roles: {},
  }
}

function hasOnlyGrown({ versions }: ConversationShape, now: Map<number, number>): boolean {
  for (const [number, version] of versions) if (now.get(number) !== version) return false
  return true
}

function add(
  shape: ConversationShape,
  versions: Map<number, number>,
  messages: StoredMessage[],
  book: PriceBook,
): void {
  for (const message of messages) {
    shape.versions.set(message.number, versions.get(message.number) ?? 0)
    shape.roles[message.role] = (shape.roles[message.role] ?? 0) + 1
    addPrompt(shape, message)
    addCalls(shape, message)
    addEffects(shape, message)
    addSpent(shape, message, book)
  }
}

function addPrompt(shape: ConversationShape, message: StoredMessage): void {
  const { number, at, parts } = message
  if (parts.some(({ type }) => type === "summary")) shape.marks.push({ number, mark: "summary", text: "Summary" })
  if (message.role !== "user" || message.abandoned) return
  const text = messageText(message, "user_only")
    .trim()
    .slice(0, PROMPT_CHARS * 2)
    .replaceAll(/\s+/g, " ")
  if (text !== "") shape.prompts.push({ number, text: text.slice(0, PROMPT_CHARS), ...(at !== undefined && { at }) })
}

function addCalls({ calls }: ConversationShape, { number, parts }: StoredMessage): void {
  for (const part of parts) {
    if ((part.type !== "tool_call" && part.type !== "tool_result") || part.call_id === undefined) continue
    const known = calls.get(part.call_id) ?? {}
    calls.set(part.call_id, part.type === "tool_call" ? { ...known, madeIn: number } : { ...known, answeredIn: number })
  }
}

function addEffects(shape: ConversationShape, { number, effects }: StoredMessage): void {
  let hasEdit = false
  for (const effect of effects) {
    if (effect.type === "file") {
      const isRead = effect.action !== "edited"
      const known = shape.files.get(effect.path) ?? { path: effect.path, added: 0, removed: 0, number, isRead }
      shape.files.set(effect.path, {
        ...known,
        added: known.added + (effect.added ?? 0),
        removed: known.removed + (effect.removed ?? 0),
        isRead: known.isRead && isRead,
        number: known.isRead && !isRead ? number : known.number,
      })
      if (!isRead && !hasEdit) shape.marks.push({ number, mark: "edit", text: effect.path })
      hasEdit ||= !isRead
    } else if (effect.type === "command") {
      const isTest = testCommand(effect.command) !== undefined
      const { failed } = effect
      shape.commands.push({ number, command: effect.command, isTest, ...(failed !== undefined && { failed }) })
      if (failed) shape.marks.push({ number, mark: "failed", text: effect.command })
    } else if (effect.type === "commit") {
      shape.made.push({ number, name: effect.hash, subject: effect.subject, isCommit: true })
      shape.marks.push({ number, mark: "commit", text: effect.subject })
    } else shape.made.push({ number, name: effect.url, subject: effect.url, isCommit: false })
  }
}

function addSpent(shape: ConversationShape, message: StoredMessage, book: PriceBook): void {
  if (!message.usage) return
  const last = shape.spent.at(-1) ?? { cost: 0, tokens: 0 }
  const { spent } = spentIn([{ ...message, effects: [] }])
  const priced = spent.map((part) => ({ ...moneyFor(part, book), tokens: tokensIn(part) }))
  const cost = priced.reduce((sum, { money }) => sum + totalMoney(money), last.cost)
  const tokens = priced.reduce((sum, part) => sum + part.tokens, last.tokens)
  for (const { unpriced, tokens: without } of priced) if (unpriced === "tokens") shape.unpriced += without
  if (spent.length > 0) shape.spent.push({ number: message.number, cost, tokens })
}
