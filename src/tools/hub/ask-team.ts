import { readHub } from "../../config/hub.ts"
import { DexError } from "../../core/error.ts"
import { type HubClient, useHub } from "../../hub-client/client.ts"
import type { Dex } from "../context.ts"

const TEAM_UNREADABLE =
  "Your team's history could not be read. Try again later; `dex hub status` shows whether the hub answers. Your own history needs no hub."

/** Runs the hub's tool of this name and returns its output. */
export function askTeam<O>(dex: Dex, tool: string, { where: _, ...input }: { where?: string }): Promise<O> {
  return withTeam(dex, (hub) => hub.ask<O>(tool, input))
}

/** Runs `work` with a connection to the team's hub, over which it can ask several questions. */
export async function withTeam<T>(dex: Dex, work: (hub: Pick<HubClient, "ask">) => Promise<T>): Promise<T> {
  const { address, token } = readHub(dex.home)
  if (address === undefined || token === undefined)
    throw new DexError("usage", "You are not logged in to a hub. Log in first: dex hub login ADDRESS")
  return useHub({ address, token, consequence: TEAM_UNREADABLE, signal: dex.signal }, work)
}
