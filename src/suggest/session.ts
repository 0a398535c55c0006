/** The current session, so that nothing is suggested that it already knows. */
export type Session = {
  /** The files worked on so far, oldest first, relative to the project. */
  files: readonly string[]
  /** The person's words so far. */
  prompt: string
  /** True if the person or the agent has mentioned the name. */
  hasMentioned(name: string): boolean
  /** True if a tool's output contained the name. */
  hasListed(name: string): boolean
  /** The keys of earlier suggestions. */
  seen: ReadonlySet<string>
}

export const NEW_SESSION: Session = {
  files: [],
  prompt: "",
  hasMentioned: () => false,
  hasListed: () => false,
  seen: new Set(),
}
