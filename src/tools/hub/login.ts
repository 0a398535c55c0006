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

/** The prefix of invitation codes. The hub exchanges a code for a token, once. */
const INVITATION = "dexi_"

/**
 * Logs in with a token or an invitation. Asks the hub whose token it is, and saves the token and the member. Consent that was
 * given for another hub or member does not apply, and is removed.
 */
export async function logIn(home: Pick<Home, "dir">, typedAddress: string, credential: string): Promise<LoggedIn> {
  const address = hubAddress(typedAddress)
  if (!isKey(credential))
    throw new DexError(
      "key",
      "That is not a token. A token is a single line of letters, digits and symbols. Nothing was changed.",
    )
  const token = credential.startsWith(INVITATION)
    ? await useHub({ address, token: credential, maxTries: 2 }, (hub) => hub.redeem(credential))
    : credential
  const account = await useHub({ address, token, maxTries: 2 }, (hub) => hub.me())
  const previous = readHub(home)
  const tenant = String(account.tenant ?? "")
  const member = String(account.member?.name ?? "")
  const isSameAccount = previous.address === address && previous.tenant === tenant && previous.member === member
  const consents: HubChoices["consents"] = isSameAccount ? previous.consents : []
  writeHub(home, { address, token, tenant, member, consents })
  return {
    address,
    tenant,
    member,
    projects: (account.projects ?? []).map(({ key }) => String(key)),
    no_longer_shared: isSameAccount ? [] : previous.consents.map(({ project }) => project),
  }
}

export type DeviceLoginOptions = {
  signal: AbortSignal
  /** Called with the page to open and the code to compare. */
  show(started: DeviceLogin): void
  /** Resolves after `ms` milliseconds, or rejects when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<unknown>
}

/** The seconds that the answer `slow_down` adds to the interval, from RFC 8628. */
const SLOW_DOWN_SECONDS = 5
const MIN_INTERVAL_SECONDS = 1

/** Returns the ways to log in to the hub at this address. */
export async function loginMethods(typedAddress: string): Promise<string[]> {
  return useHub(withoutRetries(typedAddress), (hub) => hub.loginMethods())
}

/**
 * Waits until the person has agreed on the page of their identity provider. Returns the hub's new token; throws if the person
 * refuses.
 */
export async function deviceLogin(typedAddress: string, { signal, show, wait }: DeviceLoginOptions): Promise<string> {
  return useHub({ ...withoutRetries(typedAddress), signal }, async (hub) => {
    const started = await hub.beginDeviceLogin()
    const { login, expires_in, interval } = started
    if (typeof login !== "string" || !(expires_in > 0))
      throw new DexError("hub_refused", "The answer was not from a dex hub. Check the address.")
    show(started)
    let seconds = Math.max(interval, MIN_INTERVAL_SECONDS) || SLOW_DOWN_SECONDS
    for (let secondsLeft = expires_in; secondsLeft > 0; secondsLeft -= seconds) {
      await wait(seconds * 1_000, signal)
      const answer = await hub.askDeviceLogin(login).catch(retryIfTemporary)
      if (answer.state === "done") return answer.token
      if (answer.state === "slow_down") seconds += SLOW_DOWN_SECONDS
    }
    throw new DexError("hub_expired", "The code has expired. Log in again.")
  })
}

/** Treats an error that may be temporary as a request to ask less often. Throws any other error again. */
function retryIfTemporary(error: unknown): { state: "slow_down" } {
  if (isHubError(error) && ["offline", "busy", "failed"].includes(error.trouble)) return { state: "slow_down" }
  throw error
}

const withoutRetries = (typedAddress: string) => ({
  address: hubAddress(typedAddress),
  maxTries: 1,
  consequence: "Nothing was changed.",
})
