import { readCommitDiffs } from "../../src/git/commit-diffs.ts"
import type { HistoryReader } from "../../src/store/history/store.ts"
import type { Answerer, CommitAnswer } from "./answer.ts"

type Added = { at: number; root: string; path: string }

/** The newest edit before the commit that added the same trimmed line to a file with the same end of its path. */
export async function exactMatch(store: HistoryReader): Promise<Answerer> {
  const byText = await addedLines(store)
  return async (folder, asked) => {
    const { commits } = await readCommitDiffs(
      folder,
      asked.map(({ hash }) => hash),
    )
    const byHash = new Map(commits.map((commit) => [commit.hash, commit]))
    return asked.map(({ hash, without }) => {
      const commit = byHash.get(hash)!
      const votes = new Map<string, number>()
      const lines = commit.files.flatMap(({ path, added }) =>
        added.map(({ text }) => {
          const found = (byText.get(text.trim()) ?? [])
            .filter((one) => one.at <= commit.at && one.path.endsWith(`/${path}`) && !without.has(one.root))
            .reduce<Added | undefined>((best, one) => (best && best.at >= one.at ? best : one), undefined)
          if (found) votes.set(found.root, (votes.get(found.root) ?? 0) + 1)
          return { path, text, level: found ? "likely" : "unknown", conversation: found?.root } as const
        }),
      )
      const ranked = [...votes].sort((a, b) => b[1] - a[1]).map(([root]) => root)
      return { ranked, told: ranked[0], lines } as CommitAnswer
    })
  }
}

async function addedLines(store: HistoryReader): Promise<Map<string, Added[]>> {
  const { rows } = await store.list({ kinds: ["person", "subagent", "automation"], limit: 1_000_000, offset: 0 })
  const byText = new Map<string, Added[]>()
  for (const { ref, parent } of rows)
    for (const { at, copied, superseded, parts } of await store.messages(ref))
      for (const part of copied || superseded ? [] : parts)
        for (const { path, lines } of part.type === "tool_result" ? (part.hunks ?? []) : [])
          for (const line of lines) {
            const text = line.slice(1).trim()
            if (!line.startsWith("+") || text.length < 8 || at === undefined) continue
            const known = byText.get(text) ?? []
            if (known.length === 0) byText.set(text, known)
            known.push({ at, root: parent?.id ?? ref.id, path })
          }
  return byText
}
