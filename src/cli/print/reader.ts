import type { Part } from "../../core/conversation.ts"
import type { InputOf, OutputOf } from "../../core/tool.ts"
import { isChosen, readFields, withFields } from "../../render/fields.ts"
import { plainLines } from "../../render/markdown-lines.ts"
import { type ReadMessage, readMessages } from "../../render/message-lines.ts"
import { screenOf } from "../../render/screen.ts"
import type { Dex } from "../../tools/context.ts"
import { agentNamed, resolveConversation } from "../../tools/resolve.ts"
import type { show } from "../../tools/show/show.ts"
import type { PrintContext, ReadPage } from "./printer.ts"
import { headLines, notesOfShow, printShow } from "./show.ts"
import { when } from "./words.ts"

type Output = OutputOf<typeof show>
type Input = InputOf<typeof show>
type ShownConversation = Output["conversations"][number]

/** A conversation to be read on a terminal: what the tool answered says which messages, the history what they are made of. */
export async function readShow(output: Output, context: PrintContext, input: Input, dex: Dex): Promise<ReadPage> {
  const notes = notesOfShow(output)
  if (input.format === "outline") return { lines: () => printShow(output, context, input).lines, notes }
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
  const messages = withFields(stored, fields).messages.map(({ number, role, parts, effects }): ReadMessage => {
    const { date, state, content = "" } = shown.get(number) ?? {}
    const facts = [...(date ? [when(date)] : []), ...(state ? [state] : [])]
    // A person's words, and the plans that they approved, which a tool's result may hold.
    if (input.format === "user_only")
      return { number, role: "user", parts: [{ type: "text", text: content, origin: "person" }], facts }
    return { number, role, parts, effects, facts }
  })
  const agent = (await agentNamed(dex, row.ref.source))?.name ?? row.ref.source
  const screen = screenOf(context.terminal, process.env)
  const options = {
    screen,
    agent,
    root: told.project,
    unfolds: (part: Part) => input.format === "full" || isChosen(part, fields),
  }
  const cut = told.messages.find((message) => message.cut)
  return function* () {
    yield* headLines(told, context)
    // One message that is longer than the whole budget: as much of it as the tool gave.
    if (cut) yield* ["", ...plainLines(cut.content, screen)]
    else for (const lines of readMessages(messages, options)) yield* lines
    yield ""
  }
}
