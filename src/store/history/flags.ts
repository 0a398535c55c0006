/** The bits of a message's flags. They are written to disk, so a bit must never get a second meaning. */
export const MESSAGE_FLAGS = {
  /** The message is on a branch that the person left. */
  abandoned: 1,
  /** The source once contained the message and was rewritten without it. */
  superseded: 2,
  /** The message is a fork's copy of a message in another conversation. */
  copied: 4,
  /** The message contains words that a person typed. */
  prompt: 8,
} as const
