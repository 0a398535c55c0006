import { existsSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { DexError, messageOf } from "../../core/error.ts"
import { fileNameFromTitle } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import type { Dex } from "../context.ts"
import { conversationOf } from "../fields.ts"
import { agentNamed, resolveConversation } from "../resolve.ts"
import { redactForOthers, withoutHome } from "./redacted-again.ts"
import type { ShareFormat, ShareInput } from "./share.ts"

const FILE_EXTENSIONS: Record<ShareFormat, string> = { html: "html", markdown: "md" }

export async function run(dex: Dex, input: ShareInput) {
  const { row } = await resolveConversation(dex, { id: input.id })
  const storedMessages = await (await dex.store()).messages(row.ref)
  const { home } = dex.machine
  const current = storedMessages.filter(({ superseded, abandoned }) => !superseded && !abandoned)
  const { messages, title, taken_out } = redactForOthers(
    current,
    conversationOf(row).title,
    home,
    input.no_tools === true,
  )
  const agent = (await agentNamed(dex, row.ref.source))?.name ?? row.ref.source
  const { date, project } = conversationOf(row)
  const conversation = { title, agent, date, root: withoutHome(project, home), messages, taken_out }
  const text =
    input.format === "html"
      ? (await import("./share-html.ts")).shareHtml(conversation)
      : (await import("./share-markdown.ts")).shareMarkdown(conversation)
  const file = input.print ? undefined : writeTo(dex, input, title, text)
  return {
    id: formatRef(row.ref),
    title,
    file,
    bytes: Buffer.byteLength(text),
    messages: messages.length,
    taken_out,
    text: input.print ? text : undefined,
  }
}

function writeTo(dex: Dex, { output: file, format }: ShareInput, title: string, text: string): string {
  const path = file === undefined ? unusedName(dex.cwd, title, FILE_EXTENSIONS[format]) : resolve(dex.cwd, file)
  try {
    writeFileSync(path, text, { flag: file === undefined ? "wx" : "w", mode: 0o600 })
  } catch (error) {
    throw new DexError(
      "write",
      `${path} could not be written (${messageOf(error)}). Choose another file with --output.`,
    )
  }
  return path
}

/** The path of a file that does not exist yet, named after the title. */
function unusedName(folder: string, title: string, extension: string): string {
  const name = fileNameFromTitle(title)
  for (let i = 1; ; i++) {
    const path = join(folder, `${name}${i === 1 ? "" : `-${i}`}.${extension}`)
    if (!existsSync(path)) return path
  }
}
