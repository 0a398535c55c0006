import type { Terminal } from "../../render/terminal.ts"

/**
 * What may follow `dex`. Written down once more, and compared with the commands by a test: who prints a line would otherwise load the
 * declarations of all of them.
 */
export const TYPED_AFTER_DEX =
  `search find list ls index show open get timeline scan read resume fix blame suggest tests decisions note notes
  suggestions feedback subscribe subscriptions unsubscribe docs traces trace stats usage cost costs guide sync sources doctor forget rm
  private mute reindex gc backup restore share export hub import eval config why ask chat map digest rules install uninstall handover
  watch pick view serve mcp hook completions help -h --help version -v -V --version --plain`.split(/\s+/)

/** dex's own words, with the commands in them as they are typed here: `npx dexctx show 1` where dex came by npx. */
export function asTyped(text: string, { program }: Pick<Terminal, "program">): string {
  if (program === undefined) return text
  const command = new RegExp(`^dex$|(?<![\\w./-])dex(?=\`| (?:${TYPED_AFTER_DEX.join("|")})(?![\\w-]))`, "g")
  return text.replace(command, program)
}
