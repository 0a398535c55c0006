import type { Home } from "../../config/home.ts"
import { type HubChoices, readHub, writeHub } from "../../config/hub.ts"
import { isKey } from "../../config/secret.ts"
import { DexError } from "../../core/error.ts"
import { hubAddress, isHubError, useHub } from "../../hub-client/client.ts"
import type { DeviceLogin } from "../../hub-client/wire.ts"

export type LoggedIn = {
  address: string
  tenant: string
  member: string
  projects: string[]
  /** Projects that were shared with another hub, and are not shared with this one. */
  no_longer_shared: string[]
}

/** The prefix of invitation codes. Each code creates one token. */
const INVITATION = "dexi_"

/**
 * Logs in with a token or an invitation. Asks the hub who the token belongs to, and saves both. Consent for one hub does not
 * apply to another.
 */
export async function logIn(home: Pick<Home, "dir">, where: string, typed: string): Promise<LoggedIn> {
  const address = hubAddress(where)
  if (!isKey(typed))
    throw new DexError(
      "key",
      "That is not a token. A token is one line of letters, digits and signs. Nothing was changed.",
    )
  const token = typed.startsWith(INVITATION)
    ? await useHub({ address, token: typed, patience: 2 }, (hub) => hub.redeem(typed))
    : typed
  const me = await useHub({ address, token, patience: 2 }, (hub) => hub.me())
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

export type DeviceLoginOptions = {
  signal: AbortSignal
  /** Called with the page to open and the code to compare. */
  show(begun: DeviceLogin): void
  /** Resolves after `ms` milliseconds, or rejects when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<unknown>
}

/** RFC 8628: the seconds that `slow_down` adds to the interval. */
const SLOWER_SECONDS = 5
const MIN_INTERVAL_SECONDS = 1

/** The ways to log in to the hub at this address. */
export async function loginMethods(where: string): Promise<string[]> {
  return useHub(withoutRetries(where), (hub) => hub.loginMethods())
}

/** Returns the token that the hub creates once the person has agreed on their identity provider's page. Throws if they refuse. */
export async function deviceLogin(where: string, { signal, show, wait }: DeviceLoginOptions): Promise<string> {
  return useHub({ ...withoutRetries(where), signal }, async (hub) => {
    const begun = await hub.beginDeviceLogin()
    const { login, expires_in, interval } = begun
    if (typeof login !== "string" || !(expires_in > 0))
      throw new DexError("hub_refused", "The answer was not from a dex hub. Check the address.")
    show(begun)
    let seconds = Math.max(interval, MIN_INTERVAL_SECONDS) || SLOWER_SECONDS
    for (let left = expires_in; left > 0; left -= seconds) {
      await wait(seconds * 1_000, signal)
      const answer = await hub.askDeviceLogin(login).catch(retryIfTemporary)
      if (answer.state === "done") return answer.token
      if (answer.state === "slow_down") seconds += SLOWER_SECONDS
    }
    throw new DexError("hub_expired", "The code has expired. Log in again.")
  })
}

/** Continues after an error that may be temporary. */
function retryIfTemporary(error: unknown): { state: "slow_down" } {
  if (isHubError(error) && ["offline", "busy", "failed"].includes(error.trouble)) return { state: "slow_down" }
  throw error
}

const withoutRetries = (where: string) => ({
  address: hubAddress(where),
  patience: 1,
  otherwise: "Nothing was changed.",
})
