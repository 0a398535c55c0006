import { readHub } from "../../config/hub.ts"
import { DexError } from "../../core/error.ts"
import { type HubClient, useHub } from "../../hub-client/client.ts"
import type { Dex } from "../context.ts"

const NOTHING_READ =
  "Nothing of your team's was read. Try again later; `dex hub status` shows whether the hub answers. Your own history needs no hub."

/** The answer of the hub's tool of this name. */
export function askTeam<O>(dex: Dex, tool: string, { where: _, ...input }: { where?: string }): Promise<O> {
  return withTeam(dex, (hub) => hub.ask<O>(tool, input))
}

/** Several questions over one connection. */
export async function withTeam<T>(dex: Dex, work: (hub: Pick<HubClient, "ask">) => Promise<T>): Promise<T> {
  const { address, token } = readHub(dex.home)
  if (address === undefined || token === undefined)
    throw new DexError("usage", "You are not logged in to a hub. `dex hub login ADDRESS` does that.")
  return useHub({ address, token, otherwise: NOTHING_READ, signal: dex.signal }, work)
}
