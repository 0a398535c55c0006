import type { Part } from "../../core/conversation.ts"
import { isoDate } from "../../core/dates.ts"
import { formatCount, messageText } from "../../core/format.ts"
import { type ReadMessage, type ReadOptions, readMessages } from "../../render/message-lines.ts"
import type { Screen } from "../../render/screen.ts"
import { clip, paint, safeLine, wordPattern, wrap } from "../../render/terminal.ts"
import { projectName, when } from "../../render/words.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import { spellingsIn } from "../../store/index/snippets.ts"
import type { Dex } from "../../tools/context.ts"
import { conversationOf } from "../../tools/fields.ts"
import { sizeOfRow } from "../../tools/kinds.ts"
import { agentNamed } from "../../tools/resolve.ts"
import { messageState } from "../../tools/view.ts"

/** `words` are highlighted. `unfolds` selects the parts that are shown in full. */
export type DrawOptions = { screen: Screen; words?: readonly string[]; unfolds?: ReadOptions["unfolds"] }

/**
 * A complete conversation as lines no wider than the screen. Each call of the returned function generates them from the
 * beginning.
 */
export async function conversationLines(
  dex: Dex,
  row: ConversationRow,
  options: DrawOptions,
): Promise<() => Generator<string>> {
  const messages = await (await dex.store()).messages(row.ref)
  const head = await conversationHead(dex, row, options.screen)
  const messageLines = await messageLinesOf(dex, row, messages.map(readableMessage), options)
  return function* () {
    yield* head
    yield* messageLines()
  }
}

/** Like `conversationLines`, but only for these messages, and without the head. */
export async function messageLinesOf(
  dex: Dex,
  row: ConversationRow,
  messages: readonly ReadMessage[],
  { screen, words = [], unfolds = () => false }: DrawOptions,
): Promise<() => Generator<string>> {
  const spellings = screen.color && words.length > 0 ? spellingsIn(messages.map(fullText), words) : []
  const options: ReadOptions = {
    screen,
    agent: await agentName(dex, row),
    root: row.project ?? "",
    unfolds,
    calls: await callsBefore(dex, row, messages),
    words: spellings.length > 0 ? wordPattern(spellings) : undefined,
  }
  return function* () {
    for (const lines of readMessages(messages, options)) yield* lines
  }
}

/** The texts of tool calls that were made before these messages but answered in them, by call id. */
async function callsBefore(
  dex: Dex,
  row: ConversationRow,
  messages: readonly ReadMessage[],
): Promise<Map<string, string>> {
  const madeCalls = new Set(messages.flatMap(({ parts }) => parts.flatMap((part) => callIds(part, "tool_call"))))
  const answeredCalls = messages.flatMap(({ parts }) => parts.flatMap((part) => callIds(part, "tool_result")))
  const missingCalls = new Set(answeredCalls.filter((id) => !madeCalls.has(id)))
  if (missingCalls.size === 0) return new Map()
  const parts = (await (await dex.store()).messages(row.ref)).flatMap((message) => message.parts)
  return new Map(
    parts.flatMap((part) =>
      callIds(part, "tool_call").flatMap((id) => (missingCalls.has(id) ? [[id, part.text]] : [])),
    ),
  )
}

function callIds(part: Part, type: "tool_call" | "tool_result"): string[] {
  return part.type === type && part.call_id !== undefined ? [part.call_id] : []
}

const fullText = (message: ReadMessage) => messageText({ parts: [...message.parts] }, "full")

export function readableMessage(message: StoredMessage): ReadMessage {
  const { number, role, parts, effects, at } = message
  const { state } = messageState(message)
  return {
    number,
    role,
    parts,
    effects,
    facts: [...(at === undefined ? [] : [when(isoDate(at))]), ...(state ? [state] : [])],
  }
}

async function conversationHead(dex: Dex, row: ConversationRow, screen: Screen): Promise<string[]> {
  const { title, project, date, estimated_tokens } = conversationOf(row)
  const facts = [
    await agentName(dex, row),
    projectName(safeLine(project)),
    ...(row.git_branch ? [safeLine(row.git_branch)] : []),
    when(date),
    sizeOfRow(row),
    ...(row.imported_from === undefined ? [] : [`imported from ${safeLine(row.imported_from)}`]),
    `${formatCount(estimated_tokens)} tokens`,
  ]
  return [
    ...wrap(safeLine(title), screen.columns).map((line) => paint(screen, "bold", line)),
    paint(screen, "dim", clip(facts.join(` ${screen.glyphs.dot} `), screen.columns)),
  ]
}

async function agentName(dex: Dex, { ref }: ConversationRow): Promise<string> {
  return (await agentNamed(dex, ref.source))?.name ?? ref.source
}
