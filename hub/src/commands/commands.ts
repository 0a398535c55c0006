/** The options of all `dex-hub` commands. The help shows which command uses which option. */
export type Flags = {
  tenant?: string
  to?: string
  "locked-out"?: boolean
}

export type Commands = Record<string, (words: string[], flags: Flags) => Promise<void>>

export function say(text: string): void {
  process.stdout.write(`${text}\n`)
}
