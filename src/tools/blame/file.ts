import type { BlameFacts } from "../../blame/facts.ts"
import { type LineOwner, ownersOf, uncommitted, uncommittedOwners } from "../../blame/owners.ts"
import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { type BlamedLine, blameLines } from "../../git/blame-lines.ts"
import type { CommitHead } from "../../git/commit-diffs.ts"
import { commitNamed } from "../../git/revisions.ts"
import type { Dex } from "../context.ts"
import { fromWhere } from "./from-where.ts"
import type { KnownOfLines } from "./known.ts"
import { lookInto } from "./look-into.ts"
import type { BlameInput } from "./run.ts"
import type { BlameTarget } from "./target.ts"
import { countsByAgent, countsOf, toldOwner } from "./told-owner.ts"

type FileTarget = Extract<BlameTarget, { kind: "file" }>

export async function blamedFile(dex: Dex, input: BlameInput, target: FileTarget, knowing: Promise<KnownOfLines>) {
  const { moves, copies } = input
  const { root, path, from, to } = target
  const rev = input.rev === undefined ? undefined : await revisionOf(dex, root, input.rev)
  const lines = await blameLines(root, path, { rev, from, to, moves, copies, signal: dex.signal })
  const { owners, commits, notes } = await ownersIn(dex, root, [{ path, lines }], knowing)
  const dates = new Map([...commits].map(([hash, { at }]) => [hash, isoDate(at)]))
  return {
    kind: "file" as const,
    path,
    lines: lines.map((line, i) => {
      const commit = commits.get(line.hash)
      return {
        line: line.line,
        text: line.text,
        commit: isCommitted(line) ? line.hash : "",
        was_line: line.was.line,
        was_path: line.was.path,
        date: dates.get(line.hash) ?? "",
        subject: commit?.subject ?? "",
        ...toldOwner(owners[i]!),
      }
    }),
    commits: [],
    agents: countsByAgent(owners),
    ...countsOf(owners.map(({ level }) => level)),
    notes,
  }
}

export async function revisionOf(dex: Dex, root: string, named: string): Promise<string> {
  const hash = await commitNamed(root, named, dex.signal)
  if (hash !== undefined) return hash
  throw new DexError("not_found", `There is no commit "${named}" here. \`git log\` lists them.`)
}

export type BlamedFile = { path: string; lines: BlamedLine[] }

/** Whose each line of these files is, in their order. */
export async function ownersIn(
  dex: Dex,
  root: string,
  files: readonly BlamedFile[],
  knowing: Promise<KnownOfLines> | KnownOfLines,
): Promise<{ owners: LineOwner[]; commits: Map<string, CommitHead>; facts: BlameFacts; notes: string[] }> {
  const asked = pathsByCommit(files)
  const known = await knowing
  const fresh = files.map(({ path, lines }) =>
    uncommitted(
      path,
      lines.filter((line) => !isCommitted(line)),
      dex.now(),
    ),
  )
  const { commits, foundIn, facts } = await lookInto(
    dex,
    root,
    asked,
    known,
    fresh.filter(({ files: [file] }) => file!.added.length > 0),
  )
  const ownerOf = ownersOf(commits, foundIn, facts, known.traces)
  const owners = files.flatMap(({ path, lines }, i) => {
    const ownerOfFresh = uncommittedOwners(fresh[i]!, facts)
    return lines.map((line) =>
      isCommitted(line)
        ? ownerOf(line.hash, line.was.path, line.was.line, line.text)
        : ownerOfFresh(line.hash, path, line.was.line, line.text),
    )
  })
  const left = asked.size - commits.length
  const cut = left === 0 ? [] : [`${grouped(left)} commits are too many or too large to be looked into.`]
  const memories = known.isTeam ? [fromWhere(owners)] : []
  return {
    owners,
    commits: new Map(commits.map((commit) => [commit.hash, commit])),
    facts,
    notes: [...memories, ...known.notes, ...cut],
  }
}

/** The commits that lines came with, each with the files in which they were then. */
function pathsByCommit(files: readonly BlamedFile[]): Map<string, Set<string>> {
  const paths = new Map<string, Set<string>>()
  for (const line of files.flatMap(({ lines }) => lines)) {
    if (!isCommitted(line)) continue
    const own = paths.get(line.hash)
    if (own) own.add(line.was.path)
    else paths.set(line.hash, new Set([line.was.path]))
  }
  return paths
}

function isCommitted({ hash }: BlamedLine): boolean {
  return !/^0+$/.test(hash)
}
