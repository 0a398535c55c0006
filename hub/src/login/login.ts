import type { DeviceLogin, DeviceLoginState } from "../../../src/hub-client/wire.ts"
import type { OidcSettings } from "../settings.ts"
import type { Identity } from "../store/identity.ts"

/** Login with an identity provider, whose access tokens also work for MCP. */
export type HubLogin = {
  settings: OidcSettings
  devices: DeviceLogins
  /** Throws a HubProblem: 401 if the token is not for this hub, 403 if it lacks the scope or belongs to no member. */
  holderOf(accessToken: string): Promise<Identity>
}

export type DeviceLogins = {
  begin(): Promise<DeviceLogin>
  /** Returns the person's token once they have agreed. It is returned only once. */
  ask(login: unknown): Promise<DeviceLoginState>
}

/** The resource for which an access token must be issued (RFC 8707). */
export function resourceOf({ url }: Pick<OidcSettings, "url">): string {
  return `${url}/mcp`
}
