import { createDex } from "../app/dex.ts"
import { readPickerScope, savePickerScope } from "../app/listing.ts"
import { VERSION } from "../app/version.ts"
import { DexError } from "../core/error.ts"
import { terminalOf } from "../render/terminal.ts"
import { newestRows } from "./picker/newest-rows.ts"
import { type PickedAction, pick } from "./picker/picker.ts"
import { SCOPES } from "./picker/state.ts"
import { hasPicker } from "./terminal/has-picker.ts"

/**
 * Opens the picker and does what the person chooses. With `printsRef` it only prints the ref, and draws on stderr. Before
 * anything was read, it opens empty if `readsFirst`, and fills while it reads. Returns the exit code, or undefined if there is
 * nothing to choose from.
 */
export async function openPicker({ text = "", printsRef = false, readsFirst = false }): Promise<number | undefined> {
  const dex = createDex({ env: process.env, cwd: process.cwd(), version: VERSION })
  let pickedAction: PickedAction
  try {
    const isFirstRun = !dex.hasHistory()
    if (isFirstRun && !readsFirst) return undefined
    const output = printsRef ? process.stderr : process.stdout
    const savedScope = readPickerScope(dex.home.dir)
    const rememberedScope = SCOPES.find((one) => one === savedScope) ?? "all"
    const scoped = await newestRows(dex, { scope: rememberedScope }, output.rows || 24)
    // A scope without conversations would look like an empty history.
    const scope = scoped.rows.length === 0 ? "all" : rememberedScope
    const newest = scope === rememberedScope ? scoped : await newestRows(dex, { scope }, output.rows || 24)
    if (newest.rows.length === 0 && !isFirstRun) return undefined
    const terminal = terminalOf(output, process.env)
    pickedAction = await pick({
      dex,
      input: process.stdin,
      output,
      terminal,
      text,
      first: newest,
      scope,
      onScope: (chosen) => savePickerScope(dex.home.dir, chosen),
      returnsRow: printsRef,
    })
  } finally {
    dex.close()
  }
  return performAction(pickedAction, printsRef)
}

async function performAction(picked: PickedAction, printsRef: boolean): Promise<number | undefined> {
  switch (picked.type) {
    case "nothing_found":
      return undefined
    case "left":
      return printsRef ? 1 : 0
    case "chosen":
      process.stdout.write(`${picked.row.ref}\n`)
      return 0
    case "resume":
      return runLine("resume", picked.row.ref)
    case "view":
      return runLine("view", picked.row.ref)
    case "hand_over":
      return runLine("handover", picked.row.ref, "--to", picked.to)
  }
}

async function runLine(...words: string[]): Promise<number> {
  return (await import("./main.ts")).main(words)
}

/** `dex pick [words]`: the picker for use inside other commands. Returns the exit code. */
export async function pickCommand(words: string[]): Promise<number> {
  if (words.includes("--help") || words.includes("-h")) {
    const { pageHelp, PICK_HELP: PICK } = await import("./help.ts")
    process.stdout.write(pageHelp(PICK, terminalOf(process.stdout, process.env)))
    return 0
  }
  const option = words.find((word) => word.startsWith("-"))
  if (option !== undefined) throw new DexError("usage", `dex pick has no option ${option}. See: dex pick --help`)
  if (!hasPicker(process.stderr, process.env))
    throw new DexError("usage", "The picker needs a terminal. `dex list` and `dex search` also print refs.")
  const code = await openPicker({ text: words.join(" "), printsRef: true })
  if (code !== undefined) return code
  throw new DexError("no_history", "No conversations have been read yet. Run `dex sync` first.")
}
