import { readFileSync } from "node:fs"
import { join } from "node:path"
import { BENCH_DIR, requirePath } from "../set.ts"

/** A commit and the conversations that made it, by links that the project itself recorded. */
export type GoldCommit = {
  /** In the repository as it was published, which the conversations print. */
  upstream: string
  /** In the bundle. */
  hash: string
  at: number
  conversations: string[]
  half: "early" | "late"
}

/** By time. The earlier half is for building, the later one only for measuring. */
export function goldCommits(): GoldCommit[] {
  const rows = readFileSync(requirePath(join(BENCH_DIR, "commits/commits.jsonl")), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { commit: string; in_bundle: string; date: string; conversations: string[] })
    .sort((a, b) => Date.parse(a.date) - Date.parse(b.date))
  return rows.map(({ commit, in_bundle, date, conversations }, i) => ({
    upstream: commit,
    hash: in_bundle,
    at: Date.parse(date),
    conversations,
    half: i < rows.length / 2 ? "early" : "late",
  }))
}
