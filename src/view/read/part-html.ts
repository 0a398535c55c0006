import { localMinute } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import { type Html, html } from "../../render/html/html.ts"
import { messageHtml, type PageMessage, type PageOptions } from "../../render/html/message-html.ts"
import type { HistoryReader, StoredMessage } from "../../store/history/store.ts"
import { messageState } from "../../tools/view.ts"
import type { Addresses, RequestedConversation } from "../page.ts"
import { type MessagesWithResults, readWithResults, type Subagents, subagentHtml } from "./nearby.ts"
import type { Versions } from "./shape.ts"

/** How many messages one part of the page contains. They fill several screens, but are rendered quickly. */
const MESSAGES_PER_PART = 50
/** The maximum number of characters of an output that are shown. A link shows all of it. */
const MAX_CHARS = 6_000

/** The numbers of a conversation's messages, split into parts. */
export function splitIntoParts(versions: Versions): number[][] {
  const numbers = [...versions.keys()]
  const parts: number[][] = []
  for (let i = 0; i < numbers.length; i += MESSAGES_PER_PART) parts.push(numbers.slice(i, i + MESSAGES_PER_PART))
  return parts.length === 0 ? [[]] : parts
}

export function partWithMessage(parts: number[][], number: number): number {
  const index = parts.findIndex((numbers) => numbers.includes(number))
  if (index === -1) throw new DexError("no_message", `There is no message ${number} in this conversation.`)
  return index
}

export async function partHtml(
  { dex, row, agent }: RequestedConversation,
  versions: Versions,
  [parts, index]: [parts: number[][], index: number],
  subagents: Subagents,
  to: Addresses,
): Promise<Html> {
  const numbers = parts[index]!
  const store = await dex.store()
  const nearby = await readWithResults(store, row.ref, parts.flat(), numbers)
  const name = formatRef(row.ref)
  const options: PageOptions = {
    agent,
    root: row.project ?? "",
    outcomes: nearby.outcomes,
    maxChars: MAX_CHARS,
    subagentOf: (id) => {
      const subagent = subagents.byCall.get(id)
      return subagent && subagentHtml(subagent, to)
    },
    rest: (number, part) =>
      html`<a class="rest" href="${to.conversation(name, `whole/${number}/${part}`)}">Show all of it</a>`,
    headExtra: (number) =>
      html`<span class="ways"><a href="${to.conversation(name, "raw", { at: number })}" title="The record that this was read from">raw</a><a href="${to.read(name, number)}" title="The address of this message">#${number}</a></span>`,
  }
  const messagesHtml = withModels(nearby.messages).map((message) => {
    const stamp = stampOf(message, versions, nearby, options)
    return cachedHtml(store, { ref: row.ref, number: message.number, stamp }, () => messageHtml(message, options))
  })
  const link = (partIndex: number, rel: "prev" | "next", label: string) => {
    const linkedPart = parts[partIndex]
    return (
      linkedPart &&
      html`<a class="more" rel="${rel}" href="${to.path(`c/${encodeURIComponent(name)}`, { from: linkedPart[0] })}" data-part="${to.conversation(name, "part", { from: linkedPart[0] })}">${label}: ${linkedPart[0]} to ${linkedPart.at(-1)}</a>`
    )
  }
  return html`<section class="part" data-index="${index}" data-from="${numbers[0] ?? 0}" data-to="${numbers.at(-1) ?? 0}"${index === parts.length - 1 && html` data-last`}>${link(index - 1, "prev", "Earlier messages")}${messagesHtml.filter((message) => message !== undefined)}${link(index + 1, "next", "Later messages")}</section>`
}

/**
 * Changes whenever the HTML of a message must change: it contains the version and facts of the message, the versions of the
 * messages that answer its calls, and the links to subagents.
 */
function stampOf(
  { number, parts, facts }: PageMessage,
  versions: Versions,
  { calls }: MessagesWithResults,
  { subagentOf }: PageOptions,
): string {
  const answers = parts.flatMap((part) => {
    if ((part.type !== "tool_call" && part.type !== "tool_result") || part.call_id === undefined) return []
    const { madeIn, answeredIn = 0 } = calls.get(part.call_id) ?? {}
    return [madeIn, answeredIn, versions.get(answeredIn), subagentOf?.(part.call_id)?.html]
  })
  return [versions.get(number), ...facts, ...answers].join("|")
}

/** The messages, with the model named only where it changes. */
function withModels(messages: StoredMessage[]): PageMessage[] {
  let lastModel: string | undefined
  return messages.map((message) => {
    const { number, role, parts, at, model } = message
    const { state } = messageState(message)
    const isNewModel = model !== undefined && model !== lastModel
    lastModel = model ?? lastModel
    const facts = [at === undefined ? "" : localMinute(at), isNewModel ? model : "", state ?? ""].filter(
      (fact) => fact !== "",
    )
    return { number, role, parts, facts }
  })
}

/** The maximum number of characters in the cache: enough for over a thousand messages. Drops the least recently used first. */
const MAX_CACHED_CHARS = 4_000_000

type CachedMessage = { stamp: string; shown: Html | undefined }
type HtmlCache = { byMessage: Map<string, CachedMessage>; chars: number }

/** One cache per history, so that another history, or one that was reopened, starts with an empty cache. */
const caches = new WeakMap<HistoryReader, HtmlCache>()

/** The HTML of a message, made once per stamp. */
function cachedHtml(
  store: HistoryReader,
  message: { ref: Ref; number: number; stamp: string },
  make: () => Html | undefined,
): Html | undefined {
  const cache = caches.get(store) ?? { byMessage: new Map(), chars: 0 }
  caches.set(store, cache)
  const name = `${formatRef(message.ref)}#${message.number}`
  const cached = cache.byMessage.get(name)
  if (cached) removeEntry(cache, name, cached)
  const current = cached?.stamp === message.stamp ? cached : { stamp: message.stamp, shown: make() }
  cache.byMessage.set(name, current)
  cache.chars += sizeOf(current)
  for (const [oldest, cached] of cache.byMessage) {
    if (cache.chars <= MAX_CACHED_CHARS) break
    removeEntry(cache, oldest, cached)
  }
  return current.shown
}

function removeEntry(cache: HtmlCache, name: string, cached: CachedMessage): void {
  cache.byMessage.delete(name)
  cache.chars -= sizeOf(cached)
}

function sizeOf({ stamp, shown }: CachedMessage): number {
  return stamp.length + (shown?.html.length ?? 0)
}
