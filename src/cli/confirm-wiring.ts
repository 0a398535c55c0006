import { DexError } from "../core/error.ts"
import { noteAskedForPrivate, wasAskedForPrivate } from "../integrations/record.ts"
import { recordFile } from "../integrations/wiring.ts"
import { safeLine, terminalOf } from "../render/terminal.ts"
import { many, shortPath } from "../render/words.ts"
import type { Dex } from "../tools/context.ts"
import { diffLines, summaryLines, type WiringOutput } from "./print/install.ts"

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

/** Says what would be written, and asks. The exact change to every file is shown to whoever wants to see it. */
async function confirmChanges(output: WiringOutput, home: string): Promise<void> {
  const context = { terminal: terminalOf(process.stdout, process.env), home, numbered: false }
  const print = (lines: string[]) => process.stdout.write(`${lines.join("\n")}\n`)
  if (!isTerminal()) {
    print(diffLines(output, context))
    throw new DexError(
      "needs_yes",
      "Nothing was changed: there is no terminal to ask on. Add --yes to make these changes.",
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

export function isTerminal(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true
}
