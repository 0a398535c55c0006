import { parseRef } from "../core/ref.ts"
import { choice, optional } from "../core/schema.ts"
import type { Dex } from "./context.ts"

// The same question, asked of what a team shares: the hub has the same tools, and answers in the same shape.

export const whereField = optional(choice(["team"], "Your team's hub."))
/** How a person says it. */
export const TEAM_FLAG = { team: "where" }

type TeamInput = { where?: string; id?: string; ids?: string[] }

/** Runs here, or on the hub where it is asked for: by `where`, or by a ref that says whose it is. */
export function alsoOnTeam<I extends TeamInput, O>(tool: string, run: (dex: Dex, input: I) => Promise<O>) {
  return async (dex: Dex, input: I): Promise<O> => {
    if (dex.isTeam || !(input.where === "team" || isTeamRef(input))) return run(dex, input)
    return (await import("./hub/ask-team.ts")).askTeam<O>(dex, tool, input)
  }
}

function isTeamRef({ where, id, ids = [] }: TeamInput): boolean {
  const refs = id === undefined ? ids : [id]
  return where === undefined && refs.length > 0 && refs.every((ref) => parseRef(ref)?.owner !== undefined)
}
