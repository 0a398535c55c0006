import { expect } from "vitest"
import type { DeviceLogin, DeviceLoginState } from "../../../src/hub-client/wire.ts"
import { hubWithPeople } from "./people.ts"
import { approve, CLIENT, type Claims, startProvider } from "./provider.ts"

const DOMAIN = "example.com"

/** A hub whose members log in with an identity provider. */
export async function hubWithLogin(people: Record<string, Claims>, options: { codeSeconds?: number } = {}) {
  const provider = await startProvider(people, options)
  const oidc = {
    issuer: provider.issuer,
    clientId: CLIENT,
    scopes: "openid email profile",
    mcpScope: "dex:read",
    days: 90,
  }
  const hub = await hubWithPeople({ DEX_HUB_OIDC_ISSUER: provider.issuer }, oidc)
  const rules = await hub.operator("tenant", "login", "acme", "--domain", DOMAIN)
  expect(rules).toMatchObject({ code: 0, stderr: "" })
  const begin = async () => (await hub.call(undefined, "POST", "/v1/login/device")).body as DeviceLogin
  const ask = ({ login }: { login: string }) => hub.call(undefined, "POST", "/v1/login/device/token", { login })
  /** From the start to the token. */
  const logIn = async (who: string) => {
    const begun = await begin()
    await approve(begun.verification_uri_complete!, who)
    return ask(begun)
  }
  const tokenOf = async (who: string) => {
    const { status, body } = await logIn(who)
    expect([status, body]).toEqual([200, { state: "done", token: expect.stringMatching(/^dexh_/) }])
    return (body as DeviceLoginState & { state: "done" }).token
  }
  const me = async (token: string) => (await hub.call(token, "GET", "/v1/me")).body
  return { ...hub, provider, begin, ask, logIn, tokenOf, me }
}

/** A verified e-mail address. */
export const verified = (email: string, more: Claims = {}): Claims => ({ email, email_verified: true, ...more })
