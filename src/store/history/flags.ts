/** A message's flags. They are written to disk, so a number never gets a second meaning. */
export const FLAG = {
  /** On a branch that the person left. */
  abandoned: 1,
  /** The source contained it once and was rewritten without it. */
  superseded: 2,
  /** A fork's copy of a message that another conversation contains. */
  copied: 4,
  /** Contains words that a person typed. */
  prompt: 8,
} as const
