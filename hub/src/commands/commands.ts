/** What `dex-hub` is told after a command's name. Each command takes those that its line in the help names. */
export type Flags = {
  tenant?: string
  role?: string
  email?: string
  scopes?: string
  days?: string
  level?: string
  limit?: string
  service?: boolean
  project?: string
  to?: string
  issuer?: string
  domain?: string
  group?: string
  everyone?: boolean
  /** The project that is named need not be there yet. */
  new?: boolean
}

export type Commands = Record<string, (words: string[], flags: Flags) => Promise<void>>

export function say(text: string): void {
  process.stdout.write(`${text}\n`)
}
