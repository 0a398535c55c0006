import { DexError } from "../../core/error.ts"
import type { Dex } from "../context.ts"
import { blamedCommits } from "./commits.ts"
import { blamedFile } from "./file.ts"
import { blamedFolder } from "./folder.ts"
import { knownOfLines } from "./known.ts"
import { blameTarget } from "./target.ts"
import type { TeamHub } from "./team-facts.ts"

export type BlameInput = {
  target: string
  rev?: string
  moves?: boolean
  copies?: boolean
  porcelain?: boolean
  where?: "team"
}

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
    throw new DexError("usage", "--porcelain and --rev are for a file. See: dex blame --help")
  // git needs as long as the facts do: neither waits for the other.
  const known = knownOfLines(dex, target, hub)
  known.catch(() => {}) // told below, unless git has something to say first
  if (target.kind === "file") return { target: input.target, ...(await blamedFile(dex, input, target, known)) }
  if (target.kind === "folder")
    return { target: input.target, ...(await blamedFolder(dex, input, target, await known)) }
  return { target: input.target, ...(await blamedCommits(dex, target, await known)) }
}
