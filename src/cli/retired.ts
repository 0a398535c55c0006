import { byName } from "../core/by-name.ts"

/**
 * Old names of commands, each with the form that replaces it. Until 0.4 they work as before, but help and completions omit
 * them. Their tools stay in the table of commands.
 */
export const RETIRED: Readonly<Record<string, string>> = {
  scan: "dex show REF --lines",
  read: "dex show REF --messages 5-10",
  timeline: "dex show REF --timeline",
}

export function isRetired(name: string): boolean {
  return Object.hasOwn(RETIRED, name)
}

/** The note for a person who typed an old name. */
export function retiredNote(name: string): string | undefined {
  const now = byName(RETIRED, name)
  return now === undefined ? undefined : `\`dex ${name}\` is now \`${now}\`.`
}
