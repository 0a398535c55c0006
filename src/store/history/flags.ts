/** What the store knows of a message besides its words. Written to disk: a number is never given a second meaning. */
export const FLAG = {
  /** The person went back, and this branch was left. */
  abandoned: 1,
  /** The source once held it and was rewritten without it. */
  superseded: 2,
  /** A fork's copy of a message that another conversation holds. */
  copied: 4,
  /** Holds words that a person typed. */
  prompt: 8,
} as const
