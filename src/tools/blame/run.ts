import type { BlameFacts } from "../../blame/facts.ts"
import type { AgentTrace } from "../../blame/recorded.ts"
import { DexError } from "../../core/error.ts"
import type { Dex } from "../context.ts"
import { learnedOf } from "../learned.ts"
import { blamedCommits } from "./commits.ts"
import { blamedFile } from "./file.ts"
import { blamedFolder } from "./folder.ts"
import { readAgentTraces } from "./read-traces.ts"
import { blameTarget } from "./target.ts"

export type BlameInput = { target: string; rev?: string; moves?: boolean; copies?: boolean; porcelain?: boolean }

/** What is known, and what of the repository's own records tells more. */
export type KnownOfLines = { facts: BlameFacts; traces: AgentTrace[]; notes: string[] }

export async function run(dex: Dex, input: BlameInput) {
  const target = await blameTarget(dex, input.target, input.rev)
  if (target.kind !== "file" && (input.porcelain || input.rev !== undefined))
    throw new DexError("usage", "--porcelain and --rev are for a file. See: dex blame --help")
  // git needs as long as the facts do: neither waits for the other.
  const known = knownOf(dex, target.project).then((one) => ({ ...one, traces: readAgentTraces(target.root) }))
  known.catch(() => {}) // told below, unless git has something to say first
  if (target.kind === "file") return { target: input.target, ...(await blamedFile(dex, input, target, known)) }
  if (target.kind === "folder")
    return { target: input.target, ...(await blamedFolder(dex, input, target, await known)) }
  return { target: input.target, ...(await blamedCommits(dex, target, await known)) }
}

const NOTHING: BlameFacts = { workers: [], editsOf: () => [], ran: [] }

async function knownOf(dex: Dex, project: string): Promise<Omit<KnownOfLines, "traces">> {
  if (!dex.hasHistory())
    return {
      facts: NOTHING,
      notes: ["No conversation was read yet: `dex sync` reads them, and then lines have owners."],
    }
  const { knowledge, notes, isHidden } = await learnedOf(dex)
  if (isHidden(project))
    return { facts: NOTHING, notes: [...notes, "This project is private: what is known of it is told only inside it."] }
  const { blameFacts } = await import("../../blame/facts.ts")
  const facts = blameFacts(knowledge, project)
  if (facts.workers.length === 0) notes.push("No conversation in this project is known.")
  return { facts, notes }
}
