import type { Part } from "../../core/conversation.ts"
import { isSameConversation, parseRef, type Ref } from "../../core/ref.ts"
import type { InputOf, OutputOf } from "../../core/tool.ts"
import { isChosen, readFields, withFields } from "../../render/fields.ts"
import { plainLines } from "../../render/markdown-lines.ts"
import type { ReadMessage } from "../../render/message-lines.ts"
import { screenOf } from "../../render/screen.ts"
import type { Dex } from "../../tools/context.ts"
import { resolveConversation } from "../../tools/resolve.ts"
import type { show } from "../../tools/show/show.ts"
import { drawnLines, readable } from "./conversation-lines.ts"
import { headLines, notesOfShow, printShow } from "./show.ts"
import type { PrintContext, ReadPage } from "./words.ts"

type Output = OutputOf<typeof show>
type Input = InputOf<typeof show>
type ShownConversation = Output["conversations"][number]

/** A conversation to be read on a terminal: what the tool answered says which messages, the history what they are made of. */
export async function readShow(output: Output, context: PrintContext, input: Input, dex: Dex): Promise<ReadPage> {
  const notes = notesOfShow(output)
  // Of a team's conversation there is no more here than the hub answered.
  const isOnHub = output.conversations.some(({ id }) => parseRef(id)?.owner !== undefined)
  if (input.format === "outline" || isOnHub) return { lines: () => printShow(output, context, input).lines, notes }
  const read: (() => Generator<string>)[] = []
  for (const told of output.conversations) read.push(await conversation(told, context, input, dex))
  return { lines: () => read.values().flatMap((lines) => lines()), notes }
}

async function conversation(
  told: ShownConversation,
  context: PrintContext,
  input: Input,
  dex: Dex,
): Promise<() => Generator<string>> {
  const { row } = await resolveConversation(dex, { id: told.id })
  const shown = new Map(told.messages.map((message) => [message.index, message]))
  const fields = readFields(input)
  const stored = await (await dex.store()).messages(row.ref, [...shown.keys()])
  const messages = withFields(stored, fields).messages.map((message): ReadMessage => {
    const read = readable(message)
    if (input.format !== "user_only") return read
    // A person's words, and the plans that they approved, which a tool's result may hold.
    const text = shown.get(message.number)?.content ?? ""
    return { ...read, role: "user", effects: [], parts: [{ type: "text", text, origin: "person" }] }
  })
  const screen = screenOf(context.terminal, process.env)
  const unfolds = (part: Part) => input.format === "full" || isChosen(part, fields)
  const drawn = await drawnLines(dex, row, messages, { screen, words: wordsFor(dex, row.ref), unfolds })
  const cut = told.messages.find((message) => message.cut)
  return function* () {
    yield* headLines(told, context)
    // One message that is longer than the whole budget: as much of it as the tool gave.
    if (cut) yield* ["", ...plainLines(cut.content, screen)]
    else yield* drawn()
    yield ""
  }
}

/** What was searched for, where this is a row of the last search. */
function wordsFor(dex: Dex, ref: Ref): string[] {
  const { refs, words } = dex.lastListing()
  const isListed = refs.some((text) => {
    const { source, prefix: id = "", owner } = parseRef(text) ?? {}
    return source !== undefined && isSameConversation({ source, id, owner }, ref)
  })
  return isListed ? words : []
}
