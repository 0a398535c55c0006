import { formatRef, type Ref } from "../core/ref.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../store/history/store.ts"

export type Masking = {
  subjects: Iterable<string>
  /** Only these conversations are there, by ref. */
  only: ReadonlySet<string>
  /** Called before a conversation is read for the first time; what it throws ends the reading. */
  onConversation?: (row: ConversationRow) => Promise<void>
}

/**
 * The history without what gives a commit away: calls that commit, show the log or speak to the forge, their results,
 * and every verbatim occurrence of a subject. A subject that still finds its conversation finds it by the work itself.
 */
export function maskedStore(store: HistoryReader, { subjects, only, onConversation }: Masking): HistoryReader {
  const mask = subjectMask(subjects)
  const telling = new Map<string, ReadonlySet<string>>()
  const conversation = async (ref: Ref) => {
    const row = await store.conversation(ref)
    return row && maskTitle(row, mask)
  }
  return {
    ...store,
    changes: async (after, limit) => {
      const feed = await store.changes(after, limit)
      return { ...feed, changes: feed.changes.filter(({ ref }) => ref !== undefined && only.has(formatRef(ref))) }
    },
    conversation,
    titles: async (refs) => {
      const rows = await Promise.all(refs.map(conversation))
      return rows.map((row) => row?.title?.text ?? "")
    },
    messages: async (ref, numbers) => {
      const known = telling.get(formatRef(ref))
      if (known) return (await store.messages(ref, numbers)).map((message) => maskMessage(message, known, mask))
      // A result may stand messages after its call, so a conversation is first read as a whole.
      const row = await store.conversation(ref)
      if (row) await onConversation?.(row)
      const all = await store.messages(ref)
      const calls = tellingCalls(all)
      telling.set(formatRef(ref), calls)
      const wanted = numbers && new Set(numbers)
      return all
        .filter(({ number }) => wanted === undefined || wanted.has(number))
        .map((message) => maskMessage(message, calls, mask))
    },
  }
}

const TELLS =
  /\bgit\b[^|;&\n]*\b(?:commit|log|show|reflog|rebase|cherry-pick|notes)\b|\bgh\s+(?:pr|api|issue|release)\b/
const FORGE_TOOL = /^mcp_+git/i
const SHELL_TOOL = /bash|shell|exec|terminal|command/i

function tells(tool: string, input: string): boolean {
  if (FORGE_TOOL.test(tool)) return true
  if (!/\bg(?:it|h)\b/.test(input)) return false
  const command = commandIn(input) ?? (SHELL_TOOL.test(tool) ? input : undefined)
  return command !== undefined && TELLS.test(command)
}

function commandIn(input: string): string | undefined {
  let fields: { command?: unknown; cmd?: unknown } | null
  try {
    fields = JSON.parse(input)
  } catch {
    return undefined // a freeform tool's input is the plain text
  }
  const command = fields?.command ?? fields?.cmd
  if (Array.isArray(command)) return command.join(" ")
  return typeof command === "string" ? command : undefined
}

function tellingCalls(messages: StoredMessage[]): Set<string> {
  const calls = new Set<string>()
  for (const { parts, effects } of messages) {
    for (const part of parts)
      if (part.type === "tool_call" && part.call_id !== undefined && tells(part.tool, part.text))
        calls.add(part.call_id)
    for (const effect of effects)
      if (effect.type === "commit" && effect.call_id !== undefined) calls.add(effect.call_id)
  }
  return calls
}

function maskMessage(message: StoredMessage, calls: ReadonlySet<string>, mask: Mask): StoredMessage {
  const parts = message.parts.map((part) => {
    if (part.type !== "tool_call" && part.type !== "tool_result") return { ...part, text: mask(part.text) }
    const isTold = part.call_id !== undefined && calls.has(part.call_id)
    const gone = isTold || (part.type === "tool_call" && tells(part.tool, part.text))
    return { ...part, text: gone ? "" : mask(part.text) }
  })
  return { ...message, parts }
}

/** A title that was made of a commit is its subject, cut to fit: none is left. */
function maskTitle({ title, ...row }: ConversationRow, mask: Mask): ConversationRow {
  if (!title || title.from === "commit") return row
  return { ...row, title: { ...title, text: mask(title.text) } }
}

type Mask = (text: string) => string

/** Shorter ones are ordinary words. */
const LEAST_CHARS = 8

/** One pass over a text, however many subjects there are: they are looked up by how they begin. */
export function subjectMask(subjects: Iterable<string>): Mask {
  const byBeginning = new Map<string, string[]>()
  const firsts = new Uint8Array(1 << 16)
  for (const form of new Set([...subjects].flatMap(formsOf))) {
    if (form.length < LEAST_CHARS) continue
    const beginning = form.slice(0, LEAST_CHARS)
    byBeginning.set(beginning, [...(byBeginning.get(beginning) ?? []), form])
    firsts[firstTwo(form, 0)] = 1
  }
  // The longest first, so that no subject is left standing around a shorter one.
  for (const forms of byBeginning.values()) forms.sort((a, b) => b.length - a.length)
  return (text) => {
    let masked = ""
    let copied = 0
    for (let at = 0; at <= text.length - LEAST_CHARS; at++) {
      if (firsts[firstTwo(text, at)] === 0) continue
      const found = byBeginning.get(text.slice(at, at + LEAST_CHARS))?.find((form) => text.startsWith(form, at))
      if (found === undefined) continue
      masked += text.slice(copied, at)
      copied = at + found.length
      at = copied - 1
    }
    return copied === 0 ? text : masked + text.slice(copied)
  }
}

/** Nearly every place in a text is ruled out by two characters. */
function firstTwo(text: string, at: number): number {
  return ((text.charCodeAt(at) & 255) << 8) | (text.charCodeAt(at + 1) & 255)
}

/** As it stands in text, in a tool's JSON, and without the number that a forge puts behind it. */
function formsOf(subject: string): string[] {
  const plain = [subject, subject.replace(/ \(#\d+\)$/, "")]
  return [...plain, ...plain.map((form) => JSON.stringify(form).slice(1, -1))]
}
