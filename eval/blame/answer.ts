/** The answer for one added line. A subagent's conversation is represented by its root. */
export type LineAnswer = { path: string; text: string; level: "proved" | "likely" | "unknown"; conversation?: string }

/** The answer for one commit: the most likely conversations first, the one that is shown, if any, and its lines. */
export type CommitAnswer = { ranked: string[]; told?: string; lines: LineAnswer[] }

/** Answers for commits of a repository, in order, as if it had never seen the conversations that are left out for each. */
export type Answerer = (folder: string, asked: { hash: string; without: Set<string> }[]) => Promise<CommitAnswer[]>
