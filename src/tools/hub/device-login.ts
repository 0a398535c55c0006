import { DexError } from "../../core/error.ts"
import { type HubClient, hubAddress, isHubError, openHub } from "../../hub-client/client.ts"
import type { DeviceLogin } from "../../hub-client/wire.ts"

export type DeviceLoginOptions = {
  signal: AbortSignal
  /** Told what the person has to do now. */
  show(begun: DeviceLogin): void
  /** Resolves after so many milliseconds, or rejects when the signal says so. */
  wait(ms: number, signal: AbortSignal): Promise<unknown>
}

/** RFC 8628: what `slow_down` adds to the interval. */
const SLOWER_SECONDS = 5
const SHORTEST_SECONDS = 1

/** How one can log in to the hub at this address. */
export async function loginMethods(where: string): Promise<string[]> {
  return withHub(where, undefined, (hub) => hub.loginMethods())
}

/** The token that the hub makes once the person agreed on their identity provider's page. Throws where they did not. */
export async function deviceLogin(where: string, { signal, show, wait }: DeviceLoginOptions): Promise<string> {
  return withHub(where, signal, async (hub) => {
    const begun = await hub.beginDeviceLogin()
    const { login, expires_in, interval } = begun
    if (typeof login !== "string" || !(expires_in > 0))
      throw new DexError("hub_refused", "The hub did not answer as a hub does. Is the address right?")
    show(begun)
    let seconds = Math.max(interval, SHORTEST_SECONDS) || SLOWER_SECONDS
    for (let left = expires_in; left > 0; left -= seconds) {
      await wait(seconds * 1_000, signal)
      const answer = await hub.askDeviceLogin(login).catch(lookAgain)
      if (answer.state === "done") return answer.token
      if (answer.state === "slow_down") seconds += SLOWER_SECONDS
    }
    throw new DexError("hub_expired", "The code has expired. Log in again.")
  })
}

/** A hub that cannot answer now may the next time. */
function lookAgain(error: unknown): { state: "slow_down" } {
  if (isHubError(error) && ["offline", "busy", "failed"].includes(error.trouble)) return { state: "slow_down" }
  throw error
}

async function withHub<T>(
  where: string,
  signal: AbortSignal | undefined,
  ask: (hub: HubClient) => Promise<T>,
): Promise<T> {
  const hub = openHub({
    address: hubAddress(where),
    patience: 1,
    otherwise: "Nothing was changed.",
    signal,
  })
  try {
    return await ask(hub)
  } finally {
    hub.close()
  }
}
