import { DexError } from "../core/error.ts"
import { hooksChoice, noteAskedForPrivate, wasAskedForPrivate } from "../integrations/record.ts"
import { recordFile } from "../integrations/wiring.ts"
import { safeLine, terminalOf } from "../render/terminal.ts"
import type { Dex } from "../tools/context.ts"
import { diffLines, type WiringOutput } from "./print/install.ts"
import { many, shortPath } from "./print/words.ts"

/**
 * Asks what must be asked before agents' settings are changed. True where it is to be carried out now; throws a DexError
 * when the answer is no or nobody can be asked.
 */
export async function confirmInstall(
  output: WiringOutput,
  input: { yes?: boolean; check?: boolean },
  dex: Dex,
): Promise<boolean> {
  await confirmUninstall(output, input, dex)
  const mayAsk = !input.yes && !input.check && output.agents.some(({ found }) => found)
  const asked = mayAsk && (await askForPrivate(dex))
  return output.asked || asked
}

export async function confirmUninstall(output: WiringOutput, _: object, dex: Dex): Promise<boolean> {
  if (output.asked) await confirmChanges(output, dex.machine.home)
  return output.asked
}

/**
 * Before the changes are worked out: whether agents' hooks are to ask dex, where it was never chosen and somebody is there
 * to say so.
 */
export async function withHooksChoice<
  I extends { yes?: boolean; check?: boolean; hooks?: boolean; no_hooks?: boolean },
>(input: I, dexHome: string): Promise<I> {
  if (input.yes || input.check || input.hooks !== undefined || input.no_hooks !== undefined) return input
  if (!isTerminal() || hooksChoice(recordFile(dexHome)) !== undefined) return input
  const { confirm, isCancel } = await import("@clack/prompts")
  const hooks = await confirm({
    message:
      "May agents' hooks ask dex what it knows, at a session's start, at a prompt, before an edit and after a failed command? For a week it only notes down what it would have said.",
    output: process.stderr,
  })
  if (isCancel(hooks)) throw new DexError("cancelled", "Nothing was changed.")
  return { ...input, ...(hooks ? { hooks } : { no_hooks: true }) }
}

/** Shows every change. */
async function confirmChanges(output: WiringOutput, home: string): Promise<void> {
  const terminal = terminalOf(process.stdout, process.env)
  process.stdout.write(`${diffLines(output, { terminal, home, numbered: false }).join("\n")}\n`)
  if (!isTerminal())
    throw new DexError(
      "needs_yes",
      "Nothing was changed: there is no terminal to ask on. Add --yes to make these changes.",
    )
  const { confirm, isCancel } = await import("@clack/prompts")
  const count = output.files.filter(({ change }) => change !== "none" && change !== "problem").length
  const yes = await confirm({
    message: `Make ${count === 1 ? "this change" : `these changes to ${count} files`}? Files that were there are kept as backups.`,
    output: process.stderr,
  })
  if (isCancel(yes) || !yes) throw new DexError("cancelled", "Nothing was changed.")
}

/** So many projects fit a screen; the others can be named. */
const MOST_PROJECTS = 20

/**
 * Asks once, on a terminal, which projects are private, before agents can read them. Where nothing is kept yet there is
 * nothing to choose from: then it asks another time. True where it asked.
 */
async function askForPrivate(dex: Dex): Promise<boolean> {
  const record = recordFile(dex.home.dir)
  if (!isTerminal() || !dex.hasHistory() || wasAskedForPrivate(record)) return false
  const store = await dex.storeToWrite()
  const open = (await store.busiestProjects(MOST_PROJECTS)).filter((project) => !project.private)
  if (open.length === 0) return false
  const others = (await store.projects()).filter((project) => !project.private).length - open.length
  const { multiselect, isCancel } = await import("@clack/prompts")
  const chosen = await multiselect({
    message: `Which projects are private? Agents get nothing from a private project unless they work inside it.${others > 0 ? ` These have the most conversations; ${many(others, "other")}: dex private <folder>.` : ""} None is fine.`,
    options: open.map(({ path }) => ({ value: path, label: safeLine(shortPath(path, dex.machine.home)) })),
    required: false,
    maxItems: 12,
    output: process.stderr,
  })
  if (isCancel(chosen)) throw new DexError("cancelled", "Nothing was changed.")
  for (const path of chosen) await store.setPrivate(path, true)
  noteAskedForPrivate(record)
  return true
}

function isTerminal(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true
}
