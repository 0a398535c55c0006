import { DexError } from "../core/error.ts"
import { terminalOf } from "../render/terminal.ts"
import { hasPicker, openPicker } from "./open-picker.ts"

/** `dex pick [words]`: the picker as a part of other commands. Returns the exit code. */
export async function pickCommand(words: string[]): Promise<number> {
  if (words.includes("--help") || words.includes("-h")) {
    const { pageHelp, PICK } = await import("./help.ts")
    process.stdout.write(pageHelp(PICK, terminalOf(process.stdout, process.env)))
    return 0
  }
  const option = words.find((word) => word.startsWith("-"))
  if (option !== undefined) throw new DexError("usage", `dex pick has no option ${option}. See: dex pick --help`)
  if (!hasPicker(process.stderr, process.env))
    throw new DexError("usage", "There is no terminal to choose on. `dex list` and `dex search` print refs.")
  const code = await openPicker({ text: words.join(" "), prints: true })
  if (code !== undefined) return code
  throw new DexError("no_history", "There are no conversations yet. `dex` reads what your agents have written.")
}
