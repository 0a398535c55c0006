import type { Terminal } from "../../render/terminal.ts"
import { everyCommand } from "../other-commands.ts"

/** dex's own words, with the commands in them as they are typed here: `npx dexctx show 1` where dex came by npx. */
export function asTyped(text: string, { program }: Pick<Terminal, "program">): string {
  if (program === undefined) return text
  const names = ["--plain", ...everyCommand().flatMap(({ name, aliases = [] }) => [name, ...aliases])]
  const command = new RegExp(`^dex$|(?<![\\w./-])dex(?=\`| (?:${names.join("|")})(?![\\w-]))`, "g")
  return text.replace(command, program)
}
