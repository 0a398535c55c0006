import { writeFileSync } from "node:fs"
import { resolve } from "node:path"
import type { ChatInput, Turn } from "../../answers/chat.run.ts"
import { codeOf, messageOf } from "../../core/error.ts"
import { padEnd, safe, safeLine, terminalOf } from "../../render/terminal.ts"
import type { Dex } from "../../tools/context.ts"
import { describeCollections } from "../../tools/docs/collections.ts"
import { isHere } from "../../tools/resolve.ts"
import { sourceLines } from "../print/ask.ts"
import { say } from "../say.ts"
import type { Started } from "./answer.ts"

export type Talk = {
  dex: Dex
  started: Started
  input: ChatInput
  verbose: boolean
  said: { question: string; turn: Turn }[]
  ask(question: string): Promise<string | undefined>
}

type ChatCommand = { does: string; run(talk: Talk, words: string): void | "leave" | Promise<void> }

const leave: ChatCommand = { does: "Leave. So does Ctrl-D", run: () => "leave" }

const commands: Record<string, ChatCommand> = {
  "/help": { does: "Show this", run: showHelp },
  "/collections": { does: "Show which documents are looked at", run: showCollections },
  "/use-case": { does: "Show or change what the answers are for", run: changeUseCase },
  "/clear": { does: "Start over: forget the earlier questions", run: clear },
  "/verbose": { does: "Turn showing every search and read on or off", run: toggleVerbose },
  "/sources": { does: "Show everything that was cited in this chat", run: showSources },
  "/save": { does: "Write this chat to a Markdown file: /save notes.md", run: save },
  "/quit": leave,
  "/exit": leave,
}

export const COMMANDS = Object.keys(commands)

/** A path is no command: `/etc/hosts has which port?` is a question. */
export function isCommand(line: string): boolean {
  return /^\/[a-z-]*(?:\s|$)/i.test(line)
}

export async function runChatCommand(line: string, talk: Talk): Promise<"leave" | undefined> {
  const [, name, words] = /^(\S+)\s*(.*)$/s.exec(line)!
  const command = commands[name!.toLowerCase()]
  if (!command) say(`There is no ${name}. /help lists what there is.`)
  return (await command?.run(talk, words!)) ?? undefined
}

function showHelp(): void {
  const width = Math.max(...COMMANDS.map((name) => name.length)) + 2
  const rows = Object.entries(commands).map(([name, { does }]) => `  ${padEnd(name, width)}${does}`)
  process.stdout.write(`${rows.join("\n")}\n`)
}

async function showCollections({ dex, input }: Talk): Promise<void> {
  const all = await describeCollections(dex)
  const looked = all.filter(({ name, project }) =>
    input.collections
      ? input.collections.includes(name)
      : project === undefined
        ? !input.no_global
        : isHere(dex, project),
  )
  for (const { name, documents, sections } of looked)
    process.stdout.write(`  ${safeLine(name)}: ${documents} documents, ${sections} sections\n`)
  if (looked.length === 0) say("No documents are looked at. `dex docs add <folder>` adds some.")
  if (!input.collections) say("Past conversations are looked at too.")
}

async function changeUseCase({ started: { chat }, ask }: Talk, words: string): Promise<void> {
  const now = chat.useCase()
  if (words === "") say(now === undefined ? "No use case is set." : `Now: ${now}`)
  const said = words || (await ask("New use case (Enter keeps it): "))?.trim()
  if (said) chat.setUseCase(said)
}

function clear({ started: { chat, kept } }: Talk): void {
  chat.clear()
  kept.cleared()
  say("Starting over. The questions and answers so far are still kept.")
}

function toggleVerbose(talk: Talk): void {
  talk.verbose = !talk.verbose
  say(talk.verbose ? "Every step is shown from now on." : "Steps are no longer shown.")
}

function showSources({ said }: Talk): void {
  const sources = new Map(said.flatMap(({ turn }) => turn.sources.map((source) => [source.n, source] as const)))
  if (sources.size === 0) {
    say("Nothing was cited yet.")
    return
  }
  const sorted = [...sources.values()].sort((a, b) => a.n - b.n)
  process.stdout.write(`${sourceLines(sorted, terminalOf(process.stdout, process.env)).join("\n")}\n`)
}

function save({ dex, started, said }: Talk, words: string): void {
  if (said.length === 0) {
    say("There is nothing to save yet.")
    return
  }
  const file = resolve(dex.cwd, words || `dex-chat-${started.kept.id() ?? "answers"}.md`)
  try {
    writeFileSync(file, markdownOf(said), { flag: "wx" })
    say(`Written to ${file}.`)
  } catch (error) {
    const isThere = codeOf(error) === "EEXIST"
    say(
      isThere
        ? `${file} exists already and was not changed. Give another name: /save other.md`
        : `It could not be written: ${messageOf(error)}`,
    )
  }
}

function markdownOf(said: Talk["said"]): string {
  return said
    .map(({ question, turn }) =>
      [
        `## ${safeLine(question)}`,
        "",
        safe(turn.stopped && turn.sources.length === 0 ? "(stopped)" : turn.answer),
        "",
        ...turn.sources.map(({ n, ref, title }) => `- [${n}] \`${safeLine(ref)}\` ${safeLine(title)}`),
        ...(turn.note ? ["", safeLine(turn.note)] : []),
        "",
      ].join("\n"),
    )
    .join("\n")
}
