/** What is said of one added line. Conversations are named by the one that they belong to. */
export type LineAnswer = { path: string; text: string; level: "proved" | "likely" | "unknown"; conversation?: string }

/** What is said of one commit: the likeliest conversations first, the one that is told, if any, and its lines. */
export type CommitAnswer = { ranked: string[]; told?: string; lines: LineAnswer[] }

/** Answers for commits of a repository, in their order, as if it had never heard of the conversations that are left out of each. */
export type Answerer = (folder: string, asked: { hash: string; without: Set<string> }[]) => Promise<CommitAnswer[]>
