import { formatRef } from "../core/ref.ts"
import type { ConversationRow, StoredMessage } from "../store/history/store.ts"
import type { Dex } from "./context.ts"
import { conversationOf } from "./fields.ts"

const MAX_TITLE_LENGTH = 200

export function headOf(row: ConversationRow) {
  const { message_count: _, estimated_tokens: __, title, ...head } = conversationOf(row)
  return { ...head, title: title.length > MAX_TITLE_LENGTH ? `${title.slice(0, MAX_TITLE_LENGTH)}…` : title }
}

/** The folders to strip from file paths, longest first. */
export function rootsOf(row: ConversationRow): string[] {
  const roots = new Set([...(row.project === undefined ? [] : [row.project]), ...row.cwds])
  return [...roots].filter((root) => root.length > 2).sort((a, b) => b.length - a.length)
}

export function messageState(message: StoredMessage): { state?: "abandoned" | "superseded" | "copied" } {
  if (message.superseded) return { state: "superseded" }
  if (message.abandoned) return { state: "abandoned" }
  return message.copied ? { state: "copied" } : {}
}

export function originsText(message: StoredMessage): string {
  return [...new Set(message.parts.map((part) => part.origin))].join(", ")
}

type CommandFlags = Record<string, string | number | string[] | true | undefined>

/** A command line for people to type. Everything is quoted for the shell, because ids come from other programs' files. */
export function commandLine(
  name: string,
  words: (string | { ref: ConversationRow["ref"] })[],
  flags: CommandFlags = {},
): string {
  const options = Object.entries(flags).flatMap(([flag, value]) => {
    if (value === undefined || (Array.isArray(value) && value.length === 0)) return []
    return value === true ? [`--${flag}`] : [`--${flag}`, quoteForShell(String(value))]
  })
  return [
    "dex",
    name,
    ...words.map((word) => quoteForShell(typeof word === "string" ? word : formatRef(word.ref))),
    ...options,
  ].join(" ")
}

/** The option of `dex show` that selects each form. */
const FORM_OPTIONS = { scan: "lines", read: "messages", timeline: "timeline" }

/**
 * The command line for a form of `dex show`. Without `hasForms` it uses the form's old command name, for people who typed that
 * name, and for agents over MCP and clients of a hub, whose dex may have no forms yet.
 */
export function formLine(
  { hasForms }: Pick<Dex, "hasForms">,
  form: keyof typeof FORM_OPTIONS,
  [conversation, ...messages]: [string | { ref: ConversationRow["ref"] }, ...string[]],
  flags: CommandFlags = {},
): string {
  if (!hasForms) return commandLine(form, [conversation, ...messages], flags)
  const option = { [FORM_OPTIONS[form]]: messages.length === 0 ? (true as const) : messages.join(",") }
  return commandLine("show", [conversation], { ...option, ...flags })
}

function quoteForShell(word: string): string {
  return /^[\w./:#,@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
