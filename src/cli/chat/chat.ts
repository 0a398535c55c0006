import { type ChatInput, startChat } from "../../answers/chat.run.ts"
import { createDex } from "../../app/dex.ts"
import { saveListing } from "../../app/listing.ts"
import { VERSION } from "../../app/version.ts"
import { DexError } from "../../core/error.ts"
import { historyNote } from "../../tools/unread.ts"
import { say } from "../print/words.ts"
import { askForAgentConsent } from "../terminal/questions.ts"
import { HOW_TO_SET_UP, printAnswer, untilInterrupted } from "./answer.ts"

/** Answers one question, or chats until the person leaves. Returns the exit code. */
export async function chatCommand(input: ChatInput): Promise<number> {
  if (input.opencode) return openCodeChat(input)
  const isInteractive = input.interactive === true || input.query === undefined
  if (isInteractive && !(process.stdin.isTTY && process.stdout.isTTY))
    throw new DexError(
      "usage",
      input.query === undefined
        ? 'A chat needs a terminal. Without one, ask a single question: dex ask "how do we retry failed webhooks"'
        : "--interactive needs a terminal. Without one, omit it to ask a single question.",
    )
  await askForAgentConsent(process.env)
  const dex = createDex({ env: process.env, cwd: process.cwd(), version: VERSION })
  try {
    const started = await startChat(dex, input)
    if (isInteractive) return await (await import("./talk.ts")).runChat(dex, started, input)
    const turn = await untilInterrupted((signal) =>
      printAnswer(started, input.query!, { signal, verbose: input.verbose === true, reportsMissingModel: true }),
    )
    const note = await historyNote(dex, { found: turn.sources.length > 0 })
    if (note !== undefined) say(note)
    if (!started.model) say(HOW_TO_SET_UP)
    const problem = started.stored.problem()
    if (problem !== undefined) say(`This chat could not be saved: ${problem}`)
    if (turn.sources.length > 0)
      saveListing(
        dex.home.dir,
        turn.sources.map(({ ref }) => ref),
      )
    if (turn.stopped) return 130
    return turn.sources.length > 0 ? 0 : 1
  } finally {
    dex.close()
  }
}

async function openCodeChat(input: ChatInput): Promise<number> {
  const dex = createDex({ env: process.env, cwd: process.cwd(), version: VERSION })
  try {
    return await (await import("./opencode.ts")).openCode(dex, input)
  } finally {
    dex.close()
  }
}
