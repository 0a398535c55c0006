import type { Home } from "../../config/home.ts"
import { type HubChoices, readHub, writeHub } from "../../config/hub.ts"
import { isKey } from "../../config/secret.ts"
import { DexError } from "../../core/error.ts"
import { type HubClient, hubAddress, openHub } from "../../hub-client/client.ts"

export type LoggedIn = {
  address: string
  tenant: string
  member: string
  projects: string[]
  /** Projects that were shared with another hub, and are not shared with this one. */
  no_longer_shared: string[]
}

/** What the codes begin with that make a token, once. */
const INVITATION = "dexi_"

/** `typed` is a token or an invitation. Asks the hub who the token belongs to, and keeps both. What was agreed to for one hub is not agreed to for another. */
export async function logIn(home: Pick<Home, "dir">, where: string, typed: string): Promise<LoggedIn> {
  const address = hubAddress(where)
  if (!isKey(typed))
    throw new DexError("key", "That is not a token: one line of letters, digits and signs is. Nothing was changed.")
  const token = typed.startsWith(INVITATION) ? await asHub(address, typed, (hub) => hub.redeem(typed)) : typed
  const me = await asHub(address, token, (hub) => hub.me())
  const before = readHub(home)
  const tenant = String(me.tenant ?? "")
  const member = String(me.member?.name ?? "")
  const isSame = before.address === address && before.tenant === tenant && before.member === member
  const kept: HubChoices["consents"] = isSame ? before.consents : []
  writeHub(home, { address, token, tenant, member, consents: kept })
  return {
    address,
    tenant,
    member,
    projects: (me.projects ?? []).map(({ key }) => String(key)),
    no_longer_shared: isSame ? [] : before.consents.map(({ project }) => project),
  }
}

async function asHub<T>(address: string, token: string, ask: (hub: HubClient) => Promise<T>): Promise<T> {
  const hub = openHub({ address, token, patience: 2 })
  try {
    return await ask(hub)
  } finally {
    hub.close()
  }
}
