import type { Part } from "../../core/conversation.ts"
import { isSameConversation, parseRef, type Ref } from "../../core/ref.ts"
import type { InputOf, OutputOf } from "../../core/tool.ts"
import { isChosen, readFields, withFields } from "../../render/fields.ts"
import { plainLines } from "../../render/markdown-lines.ts"
import type { ReadMessage } from "../../render/message-lines.ts"
import { screenOf } from "../../render/screen.ts"
import { paint, wrap } from "../../render/terminal.ts"
import type { Dex } from "../../tools/context.ts"
import { resolveConversation } from "../../tools/resolve.ts"
import type { show } from "../../tools/show/show.ts"
import { commandLine } from "../../tools/view.ts"
import { messageLinesOf, readableMessage } from "./conversation-lines.ts"
import { headLines, notesOfShow, printShow } from "./show.ts"
import { asTyped, type PrintContext, type ReadPage } from "./words.ts"

type Output = OutputOf<typeof show>
type Input = InputOf<typeof show>
type ShownConversation = Output["conversations"][number]

/** Conversations for the pager. The tool's output decides which messages are shown; their parts are read from the history. */
export async function readShow(output: Output, context: PrintContext, input: Input, dex: Dex): Promise<ReadPage> {
  const notes = notesOfShow(output)
  // A team's conversation is only on the hub, so nothing more can be read here.
  const isOnHub = output.conversations.some(({ id }) => parseRef(id)?.owner !== undefined)
  if (input.format === "outline" || input.summary || isOnHub)
    return { lines: () => printShow(output, context, input).lines, notes }
  const conversations: (() => Generator<string>)[] = []
  for (const conversation of output.conversations) conversations.push(await linesOf(conversation, context, input, dex))
  const title = output.conversations[0]?.title
  return { lines: () => conversations.values().flatMap((lines) => lines()), title, notes }
}

async function linesOf(
  conversation: ShownConversation,
  context: PrintContext,
  input: Input,
  dex: Dex,
): Promise<() => Generator<string>> {
  const { row } = await resolveConversation(dex, { id: conversation.id })
  const shownMessages = new Map(conversation.messages.map((message) => [message.index, message]))
  const fields = readFields(input)
  const storedMessages = await (await dex.store()).messages(row.ref, [...shownMessages.keys()])
  const messages = withFields(storedMessages, fields).messages.map((message): ReadMessage => {
    const fullMessage = readableMessage(message)
    if (input.format !== "user_only") return fullMessage
    // The person's words, and the plans that they approved, which may be in a tool's result.
    const text = shownMessages.get(message.number)?.content ?? ""
    return { ...fullMessage, role: "user", effects: [], parts: [{ type: "text", text, origin: "person" }] }
  })
  const screen = screenOf(context.terminal, process.env)
  const unfolds = (part: Part) => input.format === "full" || isChosen(part, fields)
  const messageLines = await messageLinesOf(dex, row, messages, { screen, words: wordsFor(dex, row.ref), unfolds })
  const cutMessage = conversation.messages.find((message) => message.cut)
  const isFolded = input.format !== "full" && messages.some(({ parts }) => parts.some(({ type }) => type !== "text"))
  const hint = `Calls and thinking in full: ${asTyped(commandLine("show", [conversation.id], { format: "full" }), context.terminal)}`
  return function* () {
    yield* headLines(conversation, context)
    // A message longer than the budget is the only one in the output, and the tool has already cut it.
    if (cutMessage) yield* ["", ...plainLines(cutMessage.content, screen)]
    else yield* messageLines()
    if (isFolded) yield* ["", ...wrap(hint, screen.columns).map((line) => paint(screen, "dim", line))]
    yield ""
  }
}

/** The words of the last search, if it found this conversation. */
function wordsFor(dex: Dex, ref: Ref): string[] {
  const { refs, words } = dex.lastListing()
  const isListed = refs.some((text) => {
    const { source, prefix: id = "", owner } = parseRef(text) ?? {}
    return source !== undefined && isSameConversation({ source, id, owner }, ref)
  })
  return isListed ? words : []
}
