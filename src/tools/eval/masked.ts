import { formatRef, type Ref } from "../../core/ref.ts"
import type { CommitRow, HistoryReader, StoredMessage } from "../../store/history/store.ts"

/**
 * The history without what gives a commit away: calls that commit, show the log or speak to the forge, their results,
 * and every verbatim occurrence of a subject. A subject that still finds its conversation finds it by the work itself.
 * It contains only the conversations in `only`, and calls `next` before it first reads the messages of one.
 */
export function maskedStore(store: HistoryReader, commits: CommitRow[], only: Set<string>, next = async () => {}) {
  const mask = subjectMask(commits.map(({ subject }) => subject))
  const telling = new Map<string, ReadonlySet<string>>()
  const conversation = async (ref: Ref) => {
    const row = await store.conversation(ref)
    // A title that was made from a commit is its subject, cut to fit.
    const title = row?.title?.from === "commit" ? undefined : row?.title
    return row && { ...row, title: title && { ...title, text: mask(title.text) } }
  }
  return {
    ...store,
    changes: async (after, limit) => {
      const feed = await store.changes(after, limit)
      return { ...feed, changes: feed.changes.filter(({ ref }) => ref !== undefined && only.has(formatRef(ref))) }
    },
    conversation,
    titles: async (refs) => (await Promise.all(refs.map(conversation))).map((row) => row?.title?.text ?? ""),
    messages: async (ref, numbers) => {
      // A result may follow many messages after its call, so calls are looked for in all messages.
      const name = formatRef(ref)
      if (!telling.has(name)) await next()
      const calls = telling.get(name) ?? tellingCalls(await store.messages(ref))
      telling.set(name, calls)
      return (await store.messages(ref, numbers)).map((message) => maskMessage(message, calls, mask))
    },
  } satisfies HistoryReader
}

const TELLS =
  /\bgit\b[^|;&\n]*\b(?:commit|log|show|reflog|rebase|cherry-pick|notes)\b|\bgh\s+(?:pr|api|issue|release)\b/
const FORGE_TOOL = /^mcp_+git/i
const SHELL_TOOL = /bash|shell|exec|terminal|command/i

function tells({ tool, text }: { tool: string; text: string }): boolean {
  return FORGE_TOOL.test(tool) || (/\bg(?:it|h)\b/.test(text) && TELLS.test(commandIn(tool, text)))
}

function commandIn(tool: string, input: string): string {
  try {
    const fields: { command?: unknown; cmd?: unknown } | null = JSON.parse(input)
    const command = fields?.command ?? fields?.cmd
    if (Array.isArray(command)) return command.join(" ")
    if (typeof command === "string") return command
  } catch {
    // a freeform tool's input is the plain text
  }
  return SHELL_TOOL.test(tool) ? input : ""
}

function tellingCalls(messages: StoredMessage[]): Set<string> {
  const calls = messages.flatMap(({ parts, effects }) => [
    ...parts.filter((part) => part.type === "tool_call").filter(tells),
    ...effects.filter((effect) => effect.type === "commit"),
  ])
  return new Set(calls.flatMap(({ call_id }) => call_id ?? []))
}

function maskMessage(message: StoredMessage, calls: ReadonlySet<string>, mask: Mask): StoredMessage {
  const parts = message.parts.map((part) => {
    const id = part.type === "tool_call" || part.type === "tool_result" ? part.call_id : undefined
    const isTelling = (part.type === "tool_call" && tells(part)) || (id !== undefined && calls.has(id))
    return { ...part, text: isTelling ? "" : mask(part.text) }
  })
  return { ...message, parts }
}

type Mask = (text: string) => string

/** Shorter subjects are ordinary words; and nobody writes longer ones, which would cost the memory of one large pattern. */
const LEAST_CHARS = 8
const MOST_CHARS = 300

/** Removes every subject from a text. */
export function subjectMask(subjects: string[]): Mask {
  const forms = [...new Set(subjects.flatMap(formsOf))].filter((form) => form.length >= LEAST_CHARS)
  // The longest first, so that no subject is left around a shorter one.
  forms.sort((a, b) => b.length - a.length)
  const any = new RegExp(forms.map((form) => form.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "g")
  return (text) => text.replaceAll(any, "")
}

/** As it stands in text, in a tool's JSON, and without the number that a forge puts behind it. */
function formsOf(text: string): string[] {
  const subject = text.slice(0, MOST_CHARS)
  const plain = [subject, subject.replace(/ \(#\d+\)$/, "")]
  return [...plain, ...plain.map((form) => JSON.stringify(form).slice(1, -1))]
}
