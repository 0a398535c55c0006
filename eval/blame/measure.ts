import { readCommitDiffs } from "../../src/git/commit-diffs.ts"
import type { Answerer, CommitAnswer } from "./answer.ts"
import type { GoldCommit } from "./gold.ts"
import type { Asked, World } from "./worlds.ts"

/** `count` out of `of`. */
export type Share = { count: number; of: number }

export type Figures = {
  proved: { right: Share; covered: Share }
  told: { right: Share; covered: Share }
  first: Share
  among_five: Share
  answered: { right: Share; covered: Share }
  /** With the true conversations removed from the history: every answer is wrong. */
  out: { commits: Share; lines: Share }
}

/** Shorter lines are not in the gold. */
const LEAST_TEXT = 8

/** A commit made of several counts as late only if all of them are. */
export const halfOfAsked = ({ of }: Asked): GoldCommit["half"] =>
  of.every(({ half }) => half === "late") ? "late" : "early"

export async function measure(
  world: World,
  answer: Answerer,
  half: GoldCommit["half"],
  linesOf: LinesOfGold,
): Promise<Figures> {
  const { folder, asked } = world
  const own = asked.filter((one) => halfOfAsked(one) === half)
  const gold = own.map(({ of }) => new Set(of.flatMap(({ conversations }) => conversations)))
  const ask = (without: (i: number) => Set<string>) =>
    answer(
      folder,
      own.map(({ hash }, i) => ({ hash, without: without(i) })),
    )
  const [said, out] = [await ask(() => new Set()), await ask((i) => gold[i]!)]
  const lines = said.flatMap((one, i) => judged(one, own[i]!, world, linesOf))
  const outLines = out.flatMap((one, i) => judged(one, own[i]!, world, linesOf))
  const told = lines.filter(({ level }) => level !== "unknown")
  const proved = lines.filter(({ level }) => level === "proved")
  const hit = (most: number) => said.filter(({ ranked }, i) => ranked.slice(0, most).some((one) => gold[i]!.has(one)))
  const answered = said.flatMap(({ told }, i) => (told === undefined ? [] : [gold[i]!.has(told)]))
  return {
    proved: { right: rightOf(proved), covered: { count: proved.length, of: lines.length } },
    told: { right: rightOf(told), covered: { count: told.length, of: lines.length } },
    first: { count: hit(1).length, of: own.length },
    among_five: { count: hit(5).length, of: own.length },
    answered: {
      right: { count: answered.filter(Boolean).length, of: answered.length },
      covered: { count: answered.length, of: own.length },
    },
    out: {
      commits: { count: out.filter(({ told }) => told !== undefined).length, of: own.length },
      lines: { count: outLines.filter(({ level }) => level !== "unknown").length, of: outLines.length },
    },
  }
}

type Judged = { level: "proved" | "likely" | "unknown"; isRight: boolean }

function rightOf(lines: Judged[]): Share {
  return { count: lines.filter(({ isRight }) => isRight).length, of: lines.length }
}

/** The lines of a commit that the gold covers, each with whether the answer is right. */
function judged({ lines }: CommitAnswer, asked: Asked, world: World, linesOf: LinesOfGold): Judged[] {
  return lines.flatMap(({ path, text, level, conversation }) => {
    const makers = makersOf(path, text, asked, world, linesOf)
    return makers ? [{ level, isRight: makers.has(conversation ?? "") }] : []
  })
}

/**
 * The conversations that the gold names for a line. For a squashed branch it covers only what the branch's gold commits added.
 */
export function makersOf(
  path: string,
  text: string,
  { hash, of }: Asked,
  { isSquashed }: World,
  linesOf: LinesOfGold,
): Set<string> | undefined {
  if (text.trim().length < LEAST_TEXT) return undefined
  const makers =
    isSquashed && hash !== of[0]!.hash ? of.filter((one) => linesOf(one).has(`${path}\n${text.trim()}`)) : of
  return makers.length === 0 ? undefined : new Set(makers.flatMap(({ conversations }) => conversations))
}

export type LinesOfGold = (commit: GoldCommit) => Set<string>

/** The lines that each gold commit itself added. */
export async function linesOfGold(folder: string, gold: GoldCommit[]): Promise<LinesOfGold> {
  const { commits } = await readCommitDiffs(
    folder,
    gold.map(({ hash }) => hash),
  )
  const byHash = new Map(
    commits.map(({ hash, files }) => [
      hash,
      new Set(files.flatMap(({ path, added }) => added.map(({ text }) => `${path}\n${text.trim()}`))),
    ]),
  )
  return ({ hash }) => byHash.get(hash)!
}
