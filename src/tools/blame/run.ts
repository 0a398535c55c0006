import { join } from "node:path"
import { DexError } from "../../core/error.ts"
import { blameLines } from "../../git/blame-lines.ts"
import { listGitFiles } from "../../git/list-files.ts"
import { many } from "../../render/words.ts"
import type { Dex } from "../context.ts"
import type { BlameInput } from "./blame.ts"
import { blameCommits } from "./commits.ts"
import { type BlamedFile, blameFile, ownersOfLines } from "./file.ts"
import { type LineKnowledge, lineKnowledge } from "./line-knowledge.ts"
import { countsByAgent, countsOf } from "./owner-facts.ts"
import { type BlameTarget, blameTarget } from "./target.ts"
import type { TeamHub } from "./team-facts.ts"

export async function run(dex: Dex, input: BlameInput) {
  if (input.where === "team") {
    const { withTeam } = await import("../hub/ask-team.ts")
    return withTeam(dex, (hub) => attributeTarget(dex, input, hub))
  }
  const output = await attributeTarget(dex, input)
  if (output.proved + output.likely > 0) return output
  const { teamHint } = await import("../hub/team-hint.ts")
  return { ...output, notes: [...output.notes, ...teamHint(dex)] }
}

async function attributeTarget(dex: Dex, input: BlameInput, hub?: TeamHub) {
  const target = await blameTarget(dex, input.target, input.rev)
  if (target.kind !== "file" && (input.porcelain || input.rev !== undefined))
    throw new DexError("usage", "--porcelain and --rev can only be used with a file. See: dex blame --help")
  // git takes as long as reading the facts, so both run at the same time.
  const knowledge = lineKnowledge(dex, target, hub)
  knowledge.catch(() => {}) // The `await` below throws this error, unless git fails first.
  if (target.kind === "file") return { target: input.target, ...(await blameFile(dex, input, target, knowledge)) }
  if (target.kind === "folder")
    return { target: input.target, ...(await blameFolder(dex, input, target, await knowledge)) }
  return { target: input.target, ...(await blameCommits(dex, target, await knowledge)) }
}

type FolderTarget = Extract<BlameTarget, { kind: "folder" }>

const MAX_FILES = 2_000
const MAX_MS = 60_000
/** How many files to blame at the same time. A single git blame uses only one processor. */
const PARALLEL_BLAMES = 4

/** Counts a folder's lines by agent, never by person. */
async function blameFolder(dex: Dex, input: BlameInput, { root, path }: FolderTarget, knowledge: LineKnowledge) {
  const files = (await listGitFiles(join(root, path), dex.signal)) ?? []
  const deadline = Date.now() + MAX_MS
  const blamedFiles: BlamedFile[] = []
  let unreadCount = 0
  const queue = files.slice(0, MAX_FILES)
  const blameQueuedFiles = async (): Promise<void> => {
    for (let file = queue.shift(); file !== undefined && Date.now() < deadline; file = queue.shift()) {
      const name = path === "" ? file : `${path}/${file}`
      try {
        const lines = await blameLines(root, name, { moves: input.moves, copies: input.copies, signal: dex.signal })
        blamedFiles.push({ path: name, lines })
      } catch (error) {
        dex.signal?.throwIfAborted()
        if (!(error instanceof Error)) throw error
        unreadCount++ // The file is not committed yet, or is a submodule or a link.
      }
    }
  }
  await Promise.all(Array.from({ length: PARALLEL_BLAMES }, blameQueuedFiles))
  const { owners, notes } = await ownersOfLines(dex, root, blamedFiles, knowledge)
  const leftOutCount = files.length - blamedFiles.length - unreadCount
  return {
    kind: "folder" as const,
    path,
    lines: [],
    commits: [],
    agents: countsByAgent(owners),
    ...countsOf(owners.map(({ level }) => level)),
    notes: [
      ...notes,
      `${many(blamedFiles.length, "file")}.`,
      ...(unreadCount > 0
        ? [
            `No line history, because they are new, are links, or belong to another repository: ${many(unreadCount, "file")}.`,
          ]
        : []),
      ...(leftOutCount > 0
        ? [`Left out: ${many(leftOutCount, "file")}. Choose a smaller folder to include all files.`]
        : []),
    ],
  }
}
