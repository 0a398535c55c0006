import { DexError } from "../../core/error.ts"
import type { OutputOf } from "../../core/tool.ts"
import { hasPrivateAnswer, notePrivateAnswer } from "../../integrations/record.ts"
import { recordFile } from "../../integrations/wiring.ts"
import { safeLine, terminalOf, wrap } from "../../render/terminal.ts"
import { many, shortPath } from "../../render/words.ts"
import type { config } from "../../tools/config/config.ts"
import type { Dex } from "../../tools/context.ts"
import type { forget } from "../../tools/forget/forget.ts"
import type { hub } from "../../tools/hub/hub.ts"
import { localModelLines } from "../print/config.ts"
import { sharingLines } from "../print/hub.ts"
import { diffLines, summaryLines, type WiringOutput } from "../print/install.ts"
import { conversationsToForget } from "../print/keeping.ts"
import { serviceLines, type WatchOutput } from "../print/watch.ts"

/**
 * Asks for confirmation before agents' settings are changed. Returns true if the changes should be made now. Throws a DexError
 * if the answer is no or there is no terminal.
 */
export async function confirmInstall(
  output: WiringOutput,
  input: { yes?: boolean; check?: boolean },
  dex: Dex,
): Promise<boolean> {
  await confirmUninstall(output, input, dex)
  const mayAsk = !input.yes && !input.check && output.agents.some(({ found }) => found)
  const hasAsked = mayAsk && (await askForPrivate(dex))
  return output.asked || hasAsked
}

export async function confirmUninstall(output: WiringOutput, _: object, dex: Dex): Promise<boolean> {
  if (output.asked) await confirmChanges(output, dex.machine.home)
  return output.asked
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
 * Asks once, on a terminal, which projects are private, before agents can read them. If no conversations are stored yet, it does
 * not ask now, but the next time that dex is installed. Returns true if it asked.
 */
async function askForPrivate(dex: Dex): Promise<boolean> {
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
  notePrivateAnswer(record)
  return true
}

export function isTerminal(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true
}

type Output = OutputOf<typeof forget>

/** Asks on a terminal, because deleting cannot be undone. Without a terminal nothing is deleted unless --yes is given. */
export async function confirmForgetting(output: Output): Promise<boolean | { copies: true }> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false
  const { columns } = terminalOf(process.stderr, process.env)
  process.stderr.write(`${conversationsToForget(output, columns).join("\n")}\n`)
  const answer = output.kept_copies ? await askWithCopies(output, output.kept_copies.length) : await askYesOrNo(output)
  if (answer === "no") throw new DexError("cancelled", "Nothing was deleted.")
  return answer === "copies" ? { copies: true } : true
}

async function askYesOrNo(output: Output): Promise<"yes" | "no"> {
  const { confirm } = await import("@clack/prompts")
  const message = `Permanently delete ${theseConversations(output.count)}?`
  return (await confirm({ message, initialValue: false, output: process.stderr })) === true ? "yes" : "no"
}

async function askWithCopies(output: Output, copies: number): Promise<"yes" | "no" | "copies"> {
  const { isCancel, select } = await import("@clack/prompts")
  const answer = await select<"yes" | "no" | "copies">({
    message: `Permanently delete ${theseConversations(output.count)}?`,
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

function theseConversations(count: number): string {
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
