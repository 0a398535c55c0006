/** The options of all `dex-hub` commands. The help shows which command uses which option. */
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
  /** Allows a project that does not exist yet. */
  new?: boolean
}

export type Commands = Record<string, (words: string[], flags: Flags) => Promise<void>>

export function say(text: string): void {
  process.stdout.write(`${text}\n`)
}
