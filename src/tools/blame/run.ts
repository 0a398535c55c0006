import { join } from "node:path"
import { DexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { blameLines } from "../../git/blame-lines.ts"
import { listGitFiles } from "../../git/list-files.ts"
import type { Dex } from "../context.ts"
import type { BlameInput } from "./blame.ts"
import { blamedCommits } from "./commits.ts"
import { type BlamedFile, blamedFile, ownersOfLines } from "./file.ts"
import { type LineKnowledge, lineKnowledge } from "./line-knowledge.ts"
import { countsByAgent, countsOf } from "./owner-facts.ts"
import { type BlameTarget, blameTarget } from "./target.ts"
import type { TeamHub } from "./team-facts.ts"

export async function run(dex: Dex, input: BlameInput) {
  if (input.where === "team") {
    const { withTeam } = await import("../hub/ask-team.ts")
    return withTeam(dex, (hub) => blamed(dex, input, hub))
  }
  const output = await blamed(dex, input)
  if (output.proved + output.likely > 0) return output
  const { teamHint } = await import("../hub/team-hint.ts")
  return { ...output, notes: [...output.notes, ...teamHint(dex)] }
}

async function blamed(dex: Dex, input: BlameInput, hub?: TeamHub) {
  const target = await blameTarget(dex, input.target, input.rev)
  if (target.kind !== "file" && (input.porcelain || input.rev !== undefined))
    throw new DexError("usage", "--porcelain and --rev can only be used with a file. See: dex blame --help")
  // git takes as long as reading the facts, so both run at the same time.
  const known = lineKnowledge(dex, target, hub)
  known.catch(() => {}) // thrown below, unless git fails first
  if (target.kind === "file") return { target: input.target, ...(await blamedFile(dex, input, target, known)) }
  if (target.kind === "folder")
    return { target: input.target, ...(await blamedFolder(dex, input, target, await known)) }
  return { target: input.target, ...(await blamedCommits(dex, target, await known)) }
}

type FolderTarget = Extract<BlameTarget, { kind: "folder" }>

const MAX_FILES = 2_000
const MAX_MS = 60_000
/** How many files are blamed at the same time. git blame uses one processor. */
const AT_ONCE = 4

/** Counts a folder's lines by agent, never by person. */
async function blamedFolder(dex: Dex, input: BlameInput, { root, path }: FolderTarget, known: LineKnowledge) {
  const files = (await listGitFiles(join(root, path), dex.signal)) ?? []
  const until = Date.now() + MAX_MS
  const blamed: BlamedFile[] = []
  let unread = 0
  const queue = files.slice(0, MAX_FILES)
  const next = async (): Promise<void> => {
    for (let file = queue.shift(); file !== undefined && Date.now() < until; file = queue.shift()) {
      const name = path === "" ? file : `${path}/${file}`
      try {
        const lines = await blameLines(root, name, { moves: input.moves, copies: input.copies, signal: dex.signal })
        blamed.push({ path: name, lines })
      } catch (error) {
        dex.signal?.throwIfAborted()
        if (!(error instanceof Error)) throw error
        unread++ // not committed yet, a submodule, a link
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  const { owners, notes } = await ownersOfLines(dex, root, blamed, known)
  const left = files.length - blamed.length - unread
  return {
    kind: "folder" as const,
    path,
    lines: [],
    commits: [],
    agents: countsByAgent(owners),
    ...countsOf(owners.map(({ level }) => level)),
    notes: [
      ...notes,
      `${grouped(blamed.length)} files.`,
      ...(unread > 0
        ? [`${grouped(unread)} files have no line history: they are new, links or in another repository.`]
        : []),
      ...(left > 0 ? [`${grouped(left)} files were left out. Choose a smaller folder to include them.`] : []),
    ],
  }
}
