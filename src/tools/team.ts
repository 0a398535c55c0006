import { parseRef } from "../core/ref.ts"
import { choice, optional } from "../core/schema.ts"
import type { Dex } from "./context.ts"
import { refOfListedRow } from "./listed.ts"

// Runs a tool on the team's shared history instead of this machine's. The hub has the same tools with the same outputs.

export const whereField = optional(choice(["team"], "Your team's hub."))
/** Makes `--team` an option that stands for `where: "team"`. */
export const TEAM_FLAG = { team: "where" }

type TeamInput = { where?: string; id?: string; ids?: string[] }

/** Runs the tool here, or on the hub if `where` selects it, or if the refs or listing rows belong to a member of the team. */
export function runHereOrOnHub<I extends TeamInput, O>(tool: string, run: (dex: Dex, input: I) => Promise<O>) {
  return async (dex: Dex, input: I): Promise<O> => {
    if (dex.isTeam) return run(dex, input)
    const inputWithRefs = resolveListedRows(dex, input)
    if (input.where !== "team" && !isTeamRef(inputWithRefs)) return run(dex, input)
    return (await import("./hub/ask-team.ts")).askTeam<O>(dex, tool, inputWithRefs)
  }
}

function resolveListedRows<I extends TeamInput>(dex: Dex, input: I): I {
  const rowOrRef = (ref: string) => refOfListedRow(dex, ref) ?? ref
  const { id, ids } = input
  return { ...input, id: id === undefined ? undefined : rowOrRef(id), ids: ids?.map(rowOrRef) }
}

function isTeamRef({ where, id, ids = [] }: TeamInput): boolean {
  const refs = id === undefined ? ids : [id]
  return where === undefined && refs.length > 0 && refs.every((ref) => parseRef(ref)?.owner !== undefined)
}
