import type { Role } from "../../core/conversation.ts"
import { messageText } from "../../core/format.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import { parseTestCommand } from "../../learn/test-runs/commands.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../../store/history/store.ts"
import { moneyFor, totalMoney } from "../../usage/money.ts"
import type { PriceBook } from "../../usage/price-of.ts"
import { countTokens, spendingInMessages } from "../../usage/spending.ts"

export type Mark = "edit" | "failed" | "commit" | "summary"
export type ChangedFile = { path: string; added: number; removed: number; number: number; isRead: boolean }

/** A conversation without its texts: enough for the outline, the facts and the division into parts. */
export type ConversationShape = {
  versions: Map<number, number>
  prompts: { number: number; text: string; at?: number }[]
  marks: { number: number; mark: Mark; text: string }[]
  files: Map<string, ChangedFile>
  commands: { number: number; command: string; isTest: boolean; failed?: boolean }[]
  commitsAndPullRequests: { number: number; name: string; subject: string; isCommit: boolean }[]
  /** The dollars and tokens spent up to and including each message. */
  spent: { number: number; cost: number; tokens: number }[]
  unpriced: number
  roles: Partial<Record<Role, number>>
}

/** Maps the number of each message of a conversation to its version, in the order of the messages. */
export type Versions = ReadonlyMap<number, number>

const PROMPT_CHARS = 160
const MAX_CACHED = 12
/** A conversation with more messages than this is not read completely before its page is shown, because that would take long. */
const LONG_CONVERSATION = 1_500

type CachedShape = { shape: ConversationShape; revision: string }

/** One cache per history, so that another history, or one that was reopened, starts with an empty cache. */
const caches = new WeakMap<HistoryReader, Map<string, CachedShape>>()

/** Reads each version of a conversation once. If a conversation has only grown, reads only the new messages. */
export async function shapeOf(store: HistoryReader, ref: Ref, book: PriceBook): Promise<ConversationShape> {
  const cache = caches.get(store) ?? new Map<string, CachedShape>()
  caches.set(store, cache)
  const name = formatRef(ref)
  const revision = await store.revision()
  const cached = cache.get(name)
  const shape = cached?.revision === revision ? cached.shape : await readShape(store, ref, book, cached?.shape)
  cache.delete(name)
  cache.set(name, { shape, revision })
  for (const [oldest] of cache) if (cache.size > MAX_CACHED) cache.delete(oldest)
  return shape
}

async function readShape(
  store: HistoryReader,
  ref: Ref,
  book: PriceBook,
  previous: ConversationShape | undefined,
): Promise<ConversationShape> {
  const versions = await versionsOf(store, ref)
  const shape = previous && hasOnlyGrown(previous, versions) ? previous : emptyShape()
  const newNumbers = [...versions.keys()].filter((number) => !shape.versions.has(number))
  if (newNumbers.length > 0 || shape !== previous)
    addMessages(shape, versions, await store.messages(ref, shape === previous ? newNumbers : undefined), book)
  return shape
}

/** The current versions, from the cache if it is up to date. */
export async function currentVersions(store: HistoryReader, ref: Ref): Promise<Versions> {
  const cached = caches.get(store)?.get(formatRef(ref))
  return cached?.revision === (await store.revision()) ? cached.shape.versions : versionsOf(store, ref)
}

async function versionsOf(store: HistoryReader, ref: Ref): Promise<Map<number, number>> {
  return new Map((await store.versions(ref)).map(({ number, version }) => [number, version]))
}

/** The versions of a conversation that is too long to be read at once. Undefined if it is short or was read before. */
export async function versionsOfUnread(
  store: HistoryReader,
  { ref, message_count }: Pick<ConversationRow, "ref" | "message_count">,
): Promise<Versions | undefined> {
  if (message_count <= LONG_CONVERSATION || caches.get(store)?.has(formatRef(ref))) return undefined
  return versionsOf(store, ref)
}

function emptyShape(): ConversationShape {
  return {
    versions: new Map(),
    prompts: [],
    marks: [],
    files: new Map(),
    commands: [],
    commitsAndPullRequests: [],
    spent: [],
    unpriced: 0,
    roles: {},
  }
}

function hasOnlyGrown({ versions }: ConversationShape, now: Map<number, number>): boolean {
  for (const [number, version] of versions) if (now.get(number) !== version) return false
  return true
}

function addMessages(
  shape: ConversationShape,
  versions: Map<number, number>,
  messages: StoredMessage[],
  book: PriceBook,
): void {
  for (const message of messages) {
    shape.versions.set(message.number, versions.get(message.number) ?? 0)
    shape.roles[message.role] = (shape.roles[message.role] ?? 0) + 1
    addPrompt(shape, message)
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
    .replaceAll(/^#{1,6}\s+/gm, "")
    .replaceAll(/\s+/g, " ")
  if (text !== "") shape.prompts.push({ number, text: text.slice(0, PROMPT_CHARS), at })
}

function addEffects(shape: ConversationShape, { number, effects }: StoredMessage): void {
  let hasEdit = false
  for (const effect of effects) {
    if (effect.type === "file") {
      const isRead = effect.action !== "edited"
      const file = shape.files.get(effect.path) ?? { path: effect.path, added: 0, removed: 0, number, isRead }
      shape.files.set(effect.path, {
        ...file,
        added: file.added + (effect.added ?? 0),
        removed: file.removed + (effect.removed ?? 0),
        isRead: file.isRead && isRead,
        number: file.isRead && !isRead ? number : file.number,
      })
      if (!isRead && !hasEdit) shape.marks.push({ number, mark: "edit", text: effect.path })
      hasEdit ||= !isRead
    } else if (effect.type === "command") {
      const isTest = parseTestCommand(effect.command) !== undefined
      const { failed } = effect
      shape.commands.push({ number, command: effect.command, isTest, failed })
      if (failed) shape.marks.push({ number, mark: "failed", text: effect.command })
    } else if (effect.type === "commit") {
      shape.commitsAndPullRequests.push({ number, name: effect.hash, subject: effect.subject, isCommit: true })
      shape.marks.push({ number, mark: "commit", text: effect.subject })
    } else shape.commitsAndPullRequests.push({ number, name: effect.url, subject: effect.url, isCommit: false })
  }
}

function addSpent(shape: ConversationShape, message: StoredMessage, book: PriceBook): void {
  if (!message.usage) return
  const previous = shape.spent.at(-1) ?? { cost: 0, tokens: 0 }
  const { spent } = spendingInMessages([{ ...message, effects: [] }])
  const priced = spent.map((part) => ({ ...moneyFor(part, book), tokens: countTokens(part) }))
  const cost = priced.reduce((sum, { money }) => sum + totalMoney(money), previous.cost)
  const tokens = priced.reduce((sum, part) => sum + part.tokens, previous.tokens)
  for (const { unpriced, tokens: unpricedTokens } of priced) if (unpriced === "tokens") shape.unpriced += unpricedTokens
  if (spent.length > 0) shape.spent.push({ number: message.number, cost, tokens })
}
