import { parseRef } from "../core/ref.ts"
import { choice, optional } from "../core/schema.ts"
import type { Dex } from "./context.ts"
import { listedRef } from "./listed.ts"

// Selects the team's shared history instead of this machine's. The hub has the same tools with the same outputs.

export const whereField = optional(choice(["team"], "Your team's hub."))
/** The option that people type. */
export const TEAM_FLAG = { team: "where" }

type TeamInput = { where?: string; id?: string; ids?: string[] }

/** Runs the tool here, or on the hub if `where`, a ref or a listing row with an owner requests it. */
export function runHereOrOnHub<I extends TeamInput, O>(tool: string, run: (dex: Dex, input: I) => Promise<O>) {
  return async (dex: Dex, input: I): Promise<O> => {
    if (dex.isTeam) return run(dex, input)
    const named = withRowsNamed(dex, input)
    if (input.where !== "team" && !isTeamRef(named)) return run(dex, input)
    return (await import("./hub/ask-team.ts")).askTeam<O>(dex, tool, named)
  }
}

function withRowsNamed<I extends TeamInput>(dex: Dex, input: I): I {
  const named = (ref: string) => listedRef(dex, ref) ?? ref
  const { id, ids } = input
  return { ...input, id: id === undefined ? undefined : named(id), ids: ids?.map(named) }
}

function isTeamRef({ where, id, ids = [] }: TeamInput): boolean {
  const refs = id === undefined ? ids : [id]
  return where === undefined && refs.length > 0 && refs.every((ref) => parseRef(ref)?.owner !== undefined)
}
