import { existsSync } from "node:fs"
import { join } from "node:path"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import { type CommitDiff, readCommitDiffs } from "../../src/git/commit-diffs.ts"
import { attributeCommit } from "../../src/learn/blame/attribute-commit.ts"
import { type CommitCandidate, evidenceFor, type Writer } from "../../src/learn/blame/evidence.ts"
import { type BlameFacts, blameFacts, type Worker } from "../../src/learn/blame/facts.ts"
import { learn } from "../../src/learn/learn.ts"
import type { HistoryReader } from "../../src/store/history/store.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { fitLogistic } from "../suggest/fit.ts"
import type { Answerer } from "./answer.ts"
import { halfOfAsked, type LinesOfGold, makersOf } from "./measure.ts"
import type { Asked, World } from "./worlds.ts"

/** dex's facts about the conversations; `project` is where they took place. Learned once for each home. */
export async function factsOf(store: HistoryReader, dir: string, project: string): Promise<BlameFacts> {
  const knowledge = openKnowledge(join(dir, KNOWLEDGE_FILE))
  if (!existsSync(join(dir, KNOWLEDGE_FILE))) throw new Error("no facts")
  await learn(store, knowledge)
  const facts = blameFacts(knowledge, project)
  // Reads on demand, so the file stays open.
  return facts
}

/**
 * dex's own answers. Conversations know their commits by the hashes that git printed there; `hashOf` maps these to the ones here.
 */
export function dexAnswers(facts: BlameFacts, hashOf: ((told: string) => string | undefined) | undefined): Answerer {
  const commitRuns = facts.commitRuns.flatMap((one) => {
    const hash = hashOf?.(one.hash)
    return hash === undefined ? [] : [{ ...one, hash }]
  })
  return async (folder, asked) => {
    const diffs = await diffsOf(folder, asked)
    return asked.map(({ hash, without }) => {
      const commit = diffs.get(hash)!
      const { ranked, attributed, files } = attributeCommit(commit, withoutThese({ ...facts, commitRuns }, without))
      return {
        ranked: ranked.map(({ worker }) => worker.ref.id),
        ...(attributed && { told: attributed.worker.ref.id }),
        lines: files.flatMap(({ path, lines }, f) =>
          lines.map((line, l) => ({
            path,
            text: commit.files[f]!.added[l]!.text,
            level: line.level,
            ...(line.level !== "unknown" && { conversation: line.worker.ref.id }),
          })),
        ),
      }
    })
  }
}

async function diffsOf(folder: string, asked: { hash: string }[]) {
  const { commits, stopped } = await readCommitDiffs(
    folder,
    asked.map(({ hash }) => hash),
  )
  if (stopped !== undefined) throw new Error(`git stopped: ${stopped}`)
  return new Map(commits.map((commit) => [commit.hash, commit]))
}

function withoutThese(facts: BlameFacts, ids: Set<string>): BlameFacts {
  if (ids.size === 0) return facts
  const isKept = ({ worker }: { worker: Worker }) => !ids.has(worker.ref.id)
  return {
    workers: facts.workers.filter((worker) => isKept({ worker })),
    editsOf: (path, until) => facts.editsOf(path, until).filter(isKept),
    commitRuns: facts.commitRuns.filter(isKept),
  }
}

/** The weights fitted on these commits. Lines are weighted so that no commit counts as more than this many. */
const MOST_LINES = 30
const PENALTY = 1

type Row = { features: Record<string, number>; used: boolean; weight: number }

/** From commits as they are, and from squashed ones, which contain several conversations' work. */
export async function fittedWeights(facts: BlameFacts, worlds: World[], linesOf: LinesOfGold) {
  const [there, out, lines]: [Row[], Row[], Row[]] = [[], [], []]
  for (const world of worlds) {
    const own = world.asked.filter((one) => halfOfAsked(one) === "early")
    const diffs = await diffsOf(world.folder, own)
    for (const asked of own) {
      const commit = diffs.get(asked.hash)!
      const gold = new Set(asked.of.flatMap(({ conversations }) => conversations))
      const known = { ...facts, commitRuns: [] }
      for (const isOut of [false, true]) {
        const found = evidenceFor(commit, isOut ? withoutThese(known, gold) : known)
        ;(isOut ? out : there).push(...candidateRows(found.candidates, isOut ? new Set() : gold))
        lines.push(...lineRows(commit, found.writersIn, asked, world, linesOf))
      }
    }
  }
  return {
    ORDER: fitLogistic(there, PENALTY),
    TRUST: fitLogistic([...there, ...out], PENALTY),
    WROTE: fitLogistic(lines, PENALTY),
  }
}

function candidateRows(candidates: CommitCandidate[], gold: Set<string>): Row[] {
  return candidates.map(({ worker, features }) => ({ features, used: gold.has(worker.ref.id), weight: 1 }))
}

function lineRows(
  commit: CommitDiff,
  writersIn: (file: number) => Writer[][],
  asked: Asked,
  world: World,
  linesOf: LinesOfGold,
): Row[] {
  const rows = commit.files.flatMap(({ path, added }, f) => {
    const writers = writersIn(f)
    return added.flatMap(({ text }, l) => {
      const makers = makersOf(path, text, asked, world, linesOf)
      return makers === undefined
        ? []
        : writers[l]!.map(({ edit, features }) => ({ features, used: makers.has(edit.worker.ref.id), weight: 1 }))
    })
  })
  return rows.map((row) => ({ ...row, weight: Math.min(1, MOST_LINES / rows.length) }))
}
