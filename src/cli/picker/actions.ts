/** What can be done beside moving and typing: with Alt and its letter, or by the letter alone in the menu. */
export const ACTIONS = [
  { name: "hand_over", letter: "h", says: "hand over to an agent" },
  { name: "view", letter: "v", says: "view in the browser" },
  { name: "copy", letter: "c", says: "copy its resume command" },
  { name: "agent", letter: "a", says: "agent: all, or one" },
  { name: "project", letter: "p", says: "project: all, or this one" },
  { name: "time", letter: "t", says: "time: all, 1, 7, 30 days" },
] as const

export type ActionName = (typeof ACTIONS)[number]["name"]

/** The keys that are not actions, as the menu shows them. */
export const OTHER_KEYS: readonly (readonly [keys: string, says: string])[] = [
  ["Enter", "resume in its own agent"],
  ["Tab", "read"],
  ["Up Down", "move; also ^P ^N ^K ^J, PgUp PgDn, Home End"],
  ["^A ^E ^U ^W", "edit the words, as in a shell"],
  ["Esc", "clear the words, then leave"],
  ["^C  ^Z", "leave, suspend"],
]
