import { agentOf } from "../../agents/registry.ts"
import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { formatRef, siblingRef } from "../../core/ref.ts"
import { briefOf } from "../../render/brief.ts"
import { type BriefHead, briefText } from "../../render/brief-text.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { type FolderToOpen, folderToOpen } from "../folder-to-open.ts"
import { agentNamed, resolveConversation } from "../resolve.ts"
import { formLine, headOf, rootsOf } from "../view.ts"
import type { HandoverInput } from "./handover.ts"

export async function run(dex: Dex, input: HandoverInput) {
  const { row, number } = await resolveConversation(dex, { id: input.id })
  const { brief, head } = await readBrief(dex, row, number)
  const result = briefText(brief, head, input.max_tokens)
  if (result.text === undefined)
    throw new DexError(
      "budget",
      `${input.max_tokens} tokens are too few: the smallest brief takes about ${result.needed}. Try --max-tokens ${Math.ceil((result.needed + 200) / 100) * 100}.`,
    )
  if (input.to === undefined) return { ...headOf(row), ...result.text }
  const folderToUse = folderToOpen(dex, row, input.here === true)
  return { ...headOf(row), ...result.text, ...openCommand(folderToUse, input.to, result.text.brief, dex) }
}

/** The facts for a brief about a conversation, up to a message if one is named. */
export async function readBrief(dex: Dex, row: ConversationRow, number: number | undefined) {
  if (row.kind === "document")
    throw new DexError("no_conversation", `That is a document. Read it with: dex show '${formatRef(row.ref)}'`)
  const messages = messagesUpTo(await (await dex.store()).messages(row.ref), number)
  const agent = (await agentNamed(dex, row.ref.source))?.name ?? row.ref.source
  return { messages, brief: briefOf(messages, rootsOf(row)), head: briefHead(dex, row, agent, messages, number) }
}

function messagesUpTo(messages: StoredMessage[], number: number | undefined): StoredMessage[] {
  if (number === undefined) return messages
  const index = messages.findIndex((message) => message.number === number)
  if (index === -1) throw new DexError("no_message", `There is no message ${number} in this conversation.`)
  return messages.slice(0, index + 1)
}

function briefHead(
  dex: Dex,
  row: ConversationRow,
  agent: string,
  messages: StoredMessage[],
  number: number | undefined,
): BriefHead {
  const times = messages.flatMap(({ at }) => at ?? [])
  const from = times.at(0) ?? row.started_at
  const to = times.at(-1) ?? row.ended_at
  return {
    id: formatRef(row.ref),
    agent,
    title: row.title?.text ?? "(no title)",
    project: row.project ?? "",
    branch: row.git_branch,
    parent: row.parent && formatRef(siblingRef(row.ref, row.parent.id)),
    from: from === undefined ? undefined : isoDate(from),
    to: to === undefined ? undefined : isoDate(to),
    message_count: row.message_count,
    up_to: number,
    call: (form, words, flags) => formLine(dex, form, [row, ...words], flags),
  }
}

/**
 * The longest brief that is passed as an argument. Linux allows 128 kB for one argument, Windows 32,767 characters for the
 * complete command line.
 */
const MAX_ARGUMENT_BYTES = 100_000
const MAX_WINDOWS_ARGUMENT_LENGTH = 30_000

function openCommand({ folder, why }: FolderToOpen, to: string, brief: string, { machine }: Dex) {
  const maxBytes = machine.platform === "win32" ? MAX_WINDOWS_ARGUMENT_LENGTH : MAX_ARGUMENT_BYTES
  const isTooLong = Buffer.byteLength(brief) > maxBytes
  const problem =
    folder === undefined
      ? why
      : isTooLong
        ? `The brief is too long to pass to ${to} as an argument. Use a smaller --max-tokens.`
        : undefined
  return {
    command: [...(agentOf(to)?.open ?? [])],
    folder,
    note: folder === undefined ? undefined : why,
    problem,
  }
}
