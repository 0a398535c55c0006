import { homedir } from "node:os"
import { DexError } from "../../core/error.ts"
import type { OutputOf } from "../../core/tool.ts"
import { hasPrivateAnswer, recordPrivateAnswer } from "../../integrations/record.ts"
import { recordFile } from "../../integrations/wiring.ts"
import { safeLine, terminalOf, wrap } from "../../render/terminal.ts"
import { many, megabytes, shortPath } from "../../render/words.ts"
import type { config } from "../../tools/config/config.ts"
import type { Dex } from "../../tools/context.ts"
import type { docs } from "../../tools/docs/docs.ts"
import type { forget } from "../../tools/forget/forget.ts"
import type { hub } from "../../tools/hub/hub.ts"
import type { resume } from "../../tools/resume/resume.ts"
import { localModelLines } from "../print/config.ts"
import { sharingLines } from "../print/hub.ts"
import { diffLines, summaryLines, type WiringOutput } from "../print/install.ts"
import { conversationsToForget } from "../print/keeping.ts"
import { copyQuestion, notInstalledMessage } from "../print/resume.ts"
import { serviceLines, type WatchOutput } from "../print/watch.ts"

/**
 * Asks for confirmation before agents' settings are changed, and then which projects are private. Returns true if either was
 * asked; the tool then runs again. Throws a DexError if the answer is no, or if there is no terminal to ask for confirmation.
 */
export async function confirmInstall(
  output: WiringOutput,
  input: { yes?: boolean; check?: boolean },
  dex: Dex,
): Promise<boolean> {
  await confirmUninstall(output, input, dex)
  const mayAsk = !input.yes && !input.check && output.agents.some(({ found }) => found)
  const hasAsked = mayAsk && (await askForPrivateProjects(dex))
  return output.asked || hasAsked
}

export async function confirmUninstall(output: WiringOutput, _: object, dex: Dex): Promise<boolean> {
  if (!output.asked) return false
  if (output.files.length > 0 || !output.data) await confirmChanges(output, dex.machine.home)
  if (output.data) await confirmDeletingData(output.data, dex.machine.home)
  return true
}

async function confirmDeletingData({ folder, bytes }: NonNullable<WiringOutput["data"]>, home: string): Promise<void> {
  const loss = `${shortPath(folder, home)} (${megabytes(bytes)}) contains the whole history, your notes and settings. Conversations that their agents have deleted exist only there. \`dex backup\` keeps a copy.`
  if (!isTerminal())
    throw new DexError("needs_yes", `Nothing was changed. ${loss} Add --yes to delete it. This cannot be undone.`)
  process.stdout.write(`${wrap(loss, terminalOf(process.stdout, process.env).columns).join("\n")}\n`)
  const { confirm } = await import("@clack/prompts")
  const message = "Delete all of it? This cannot be undone."
  if ((await confirm({ message, initialValue: false, output: process.stderr })) === true) return
  throw new DexError("cancelled", "Nothing was changed.")
}

/** Summarises the changes and asks for confirmation. The person can also see the exact change to every file. */
async function confirmChanges(output: WiringOutput, home: string): Promise<void> {
  const context = { terminal: terminalOf(process.stdout, process.env), home, numbered: false }
  const print = (lines: string[]) => process.stdout.write(`${lines.join("\n")}\n`)
  if (!isTerminal()) {
    print(diffLines(output, context))
    throw new DexError(
      "needs_yes",
      "Nothing was changed, because dex cannot ask for confirmation without a terminal. Add --yes to make these changes.",
    )
  }
  print(summaryLines(output, context))
  const { select, isCancel } = await import("@clack/prompts")
  const count = output.files.filter(({ change }) => change !== "none" && change !== "problem").length
  for (;;) {
    const chosen = await select({
      message: `Make ${count === 1 ? "this change" : `these changes to ${count} files`}?`,
      options: [
        { value: "apply", label: "Yes" },
        { value: "diff", label: "Show every line first" },
        { value: "cancel", label: "No, change nothing" },
      ],
      output: process.stderr,
    })
    if (chosen === "apply") return
    if (isCancel(chosen) || chosen === "cancel") throw new DexError("cancelled", "Nothing was changed.")
    print(diffLines(output, context))
  }
}

/** The maximum number of projects to choose from, so that they fit on a screen. The message says how to make others private. */
const MAX_PROJECTS = 20

/**
 * Asks once, on a terminal, which projects are private, before agents can read them. Does not ask if no conversations are stored
 * yet; then the next `dex install` asks. Returns true if the person was asked.
 */
async function askForPrivateProjects(dex: Dex): Promise<boolean> {
  const record = recordFile(dex.home.dir)
  if (!isTerminal() || !dex.hasHistory() || hasPrivateAnswer(record)) return false
  const store = await dex.storeToWrite()
  const publicProjects = (await store.busiestProjects(MAX_PROJECTS)).filter((project) => !project.private)
  if (publicProjects.length === 0) return false
  const others = (await store.projects()).filter((project) => !project.private).length - publicProjects.length
  const { multiselect, isCancel } = await import("@clack/prompts")
  const chosen = await multiselect({
    message: `Which projects are private? Agents can read a private project only while they work inside it.${others > 0 ? ` These have the most conversations. For ${many(others, "other")}, run: dex private <folder>.` : ""} You can choose none.`,
    options: publicProjects.map(({ path }) => ({ value: path, label: safeLine(shortPath(path, dex.machine.home)) })),
    required: false,
    maxItems: 12,
    output: process.stderr,
  })
  if (isCancel(chosen)) throw new DexError("cancelled", "Nothing was changed.")
  for (const path of chosen) await store.setPrivate(path, true)
  recordPrivateAnswer(record)
  return true
}

export function isTerminal(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true
}

type Output = OutputOf<typeof forget>

/**
 * Asks on a terminal which conversations to delete, because deleting cannot be undone. Throws a DexError if the answer is no.
 * Returns false without a terminal; then nothing is deleted unless --yes is given.
 */
export async function confirmForgetting(output: Output): Promise<boolean | { copies: true }> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false
  const { columns } = terminalOf(process.stderr, process.env)
  process.stderr.write(`${conversationsToForget(output, columns).join("\n")}\n`)
  const answer = output.kept_copies ? await askWithCopies(output, output.kept_copies.length) : await askYesOrNo(output)
  if (answer === "no") throw new DexError("cancelled", "Nothing was deleted.")
  return answer === "copies" ? { copies: true } : true
}

/** Asks on a terminal whether to add the documents that the repository names. Without a terminal nothing is added. */
export async function confirmDocuments(output: OutputOf<typeof docs>): Promise<boolean> {
  if (!isTerminal()) return false
  const { listedNotes } = await import("../print/docs.ts")
  process.stderr.write(`${listedNotes({ ...output, asked: undefined }).join("\n")}\n`)
  const { confirm } = await import("@clack/prompts")
  const message = `Add ${many(output.listed!.paths.length, "collection")} from this repository to what dex searches here?`
  if ((await confirm({ message, initialValue: false, output: process.stderr })) === true) return true
  throw new DexError("cancelled", "Nothing was added.")
}

/** Asks on a terminal whether to replace a file. Without a terminal, it stays as it is. */
export async function confirmReplacing(file: string): Promise<boolean> {
  if (!isTerminal()) return false
  const { confirm } = await import("@clack/prompts")
  const message = `Replace ${safeLine(file)}?`
  if ((await confirm({ message, initialValue: false, output: process.stderr })) === true) return true
  throw new DexError("cancelled", "Nothing was written.")
}

async function askYesOrNo(output: Output): Promise<"yes" | "no"> {
  const { confirm } = await import("@clack/prompts")
  const message = `Permanently delete ${conversationsPhrase(output.count)}?`
  return (await confirm({ message, initialValue: false, output: process.stderr })) === true ? "yes" : "no"
}

async function askWithCopies(output: Output, copies: number): Promise<"yes" | "no" | "copies"> {
  const { isCancel, select } = await import("@clack/prompts")
  const answer = await select<"yes" | "no" | "copies">({
    message: `Permanently delete ${conversationsPhrase(output.count)}?`,
    options: [
      { value: "no", label: "No" },
      { value: "yes", label: "Yes; copies of the same messages stay readable" },
      { value: "copies", label: `Yes, and ${copies === 1 ? "the one" : `the ${copies}`} with copies too` },
    ],
    initialValue: "no",
    output: process.stderr,
  })
  return isCancel(answer) ? "no" : answer
}

function conversationsPhrase(count: number): string {
  return count === 1 ? "this conversation" : `these ${many(count, "conversation")}`
}

/**
 * Shows what would be sent or deleted, and asks for confirmation. Throws a DexError if the answer is no or there is no terminal.
 */
export async function confirmSharing(output: OutputOf<typeof hub>): Promise<true> {
  const { columns } = terminalOf(process.stderr, process.env)
  const lines = output.summary
    ? sharingLines(output.summary, output.address ?? "", columns)
    : [`${many(output.on_hub ?? 0, "conversation")} would be deleted on the hub, and cannot be sent again.`]
  process.stderr.write(`${lines.join("\n")}\n`)
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new DexError(
      "needs_yes",
      "Nothing was changed, because dex cannot ask for confirmation without a terminal. Add --yes to do this.",
    )
  const { confirm, isCancel } = await import("@clack/prompts")
  const message = output.summary
    ? "Share this project, including what is added to it later?"
    : "Delete these conversations from the hub?"
  const isConfirmed = await confirm({ message, initialValue: false, output: process.stderr })
  if (isCancel(isConfirmed) || !isConfirmed) throw new DexError("cancelled", "Nothing was changed.")
  return true
}

/** Shows the file and the commands, and asks for confirmation. Throws a DexError if the answer is no or there is no terminal. */
export async function confirmService(output: WatchOutput): Promise<true> {
  const service = output.service!
  process.stdout.write(`${serviceLines(service, terminalOf(process.stdout, process.env)).join("\n")}\n`)
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new DexError(
      "needs_yes",
      "Nothing was changed, because dex cannot ask for confirmation without a terminal. Add --yes to do this.",
    )
  const { confirm, isCancel } = await import("@clack/prompts")
  const message = service.change === "remove" ? "Remove the service?" : "Write this file and start the service?"
  const isConfirmed = await confirm({ message, output: process.stderr })
  if (isCancel(isConfirmed) || !isConfirmed) throw new DexError("cancelled", "Nothing was changed.")
  return true
}

/**
 * Says how large the local model is, and asks for confirmation. Throws a DexError if the answer is no or there is no terminal.
 */
export async function confirmLocalModel(output: OutputOf<typeof config>): Promise<true> {
  const { columns } = terminalOf(process.stderr, process.env)
  for (const line of localModelLines(output.local_model!)) process.stderr.write(`${wrap(line, columns).join("\n")}\n`)
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new DexError(
      "needs_yes",
      "Nothing was changed, because dex cannot ask for confirmation without a terminal. Add --yes to install it.",
    )
  const { confirm, isCancel } = await import("@clack/prompts")
  const isConfirmed = await confirm({ message: "Install the local model?", output: process.stderr })
  if (isCancel(isConfirmed) || !isConfirmed) throw new DexError("cancelled", "Nothing was changed.")
  process.stderr.write("Installing it with npm…\n")
  return true
}

/**
 * Names the copy that would be made, and asks for confirmation. Throws a DexError if the answer is no. Returns false
 * without a terminal, or if the agent could not be opened afterwards; then nothing is copied.
 */
export async function confirmCopy(output: OutputOf<typeof resume>): Promise<boolean> {
  if (!isTerminal() || notInstalledMessage(output.command[0] ?? "") !== undefined) return false
  const { columns } = terminalOf(process.stderr, process.env)
  process.stderr.write(`${wrap(copyQuestion(output, process.env.HOME ?? homedir()), columns).join("\n")}\n`)
  const { confirm, isCancel } = await import("@clack/prompts")
  const isConfirmed = await confirm({ message: "Copy it?", initialValue: false, output: process.stderr })
  if (isCancel(isConfirmed) || !isConfirmed) throw new DexError("cancelled", "Nothing was copied.")
  return true
}
