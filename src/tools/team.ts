import { parseRef } from "../core/ref.ts"
import { choice, optional } from "../core/schema.ts"
import type { Dex } from "./context.ts"
import { listedRef } from "./listed.ts"

// The same question about a team's shared history: the hub has the same tools and answers in the same form.

export const whereField = optional(choice(["team"], "Your team's hub."))
/** The flag that a person types. */
export const TEAM_FLAG = { team: "where" }

type TeamInput = { where?: string; id?: string; ids?: string[] }

/** Runs here, or on the hub if requested: by `where`, or by a ref or listing row that includes an owner. */
export function alsoOnTeam<I extends TeamInput, O>(tool: string, run: (dex: Dex, input: I) => Promise<O>) {
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
