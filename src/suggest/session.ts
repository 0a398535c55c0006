/** What is known of the session that is going on, so that nothing is said that it knows already. */
export type Session = {
  /** Worked on so far, the oldest first; relative to the project. */
  files: readonly string[]
  /** The person's words so far. */
  prompt: string
  /** The person or the agent has named it. */
  named(name: string): boolean
  /** It stood in what a tool printed. */
  listed(name: string): boolean
  /** Keys of what was said to it before. */
  seen: ReadonlySet<string>
}

export const NEW_SESSION: Session = {
  files: [],
  prompt: "",
  named: () => false,
  listed: () => false,
  seen: new Set(),
}
