import { createHmac } from "node:crypto"
import { generateKeyPair } from "jose"
import { describe, expect, test } from "vitest"
import { hubWithLogin, verified } from "./support/login.ts"
import { HUB_URL } from "./support/people.ts"
import { hasPostgres } from "./support/postgres.ts"
import { approve, CLIENT } from "./support/provider.ts"
import { share } from "./support/share.ts"

const RESOURCE = `${HUB_URL}/mcp`
const WHERE = `scope="dex:read", resource_metadata="${HUB_URL}/.well-known/oauth-protected-resource/mcp"`

/** gus logged in once, and may read what ann shares with everybody. */
async function hubForMcp() {
  const hub = await hubWithLogin({ gus: verified("gus@example.com"), new: verified("new@example.com") })
  await share(hub.team, hub.ann, "race", ["why does the zebrafinch race"], { visibility: "org" })
  const own = await hub.tokenOf("gus")
  const search = (token: string | undefined) => hub.mcp(token, "dex_search", { query: "zebrafinch" })
  const good = { iss: hub.provider.issuer, aud: RESOURCE, sub: "gus" }
  return { ...hub, own, search, good }
}

describe.skipIf(!hasPostgres)("the hub's MCP with OAuth", () => {
  test("without a token, says where to get one", async () => {
    const { search, call, provider } = await hubForMcp()
    const refused = await search(undefined)
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, `Bearer ${WHERE}`])
    const metadata = await call(undefined, "GET", "/.well-known/oauth-protected-resource/mcp")
    expect(metadata.body).toEqual({
      resource: RESOURCE,
      resource_name: "dex hub",
      authorization_servers: [provider.issuer],
      scopes_supported: ["dex:read"],
      bearer_methods_supported: ["header"],
    })
  })

  test("accepts an access token that the provider issued for it, and a token of its own", async () => {
    const { search, own, provider, call, hub } = await hubForMcp()
    const post = async (path: string, form: Record<string, string>) =>
      (await fetch(provider.issuer + path, { method: "POST", body: new URLSearchParams(form) })).json() as Promise<
        Record<string, string>
      >
    const begun = await post("/device/auth", { client_id: CLIENT, scope: "openid dex:read", resource: RESOURCE })
    await approve(begun.verification_uri_complete!, "gus")
    const { access_token } = await post("/token", {
      client_id: CLIENT,
      grant_type: "urn:ietf:params:oauth:grant-type:device_code",
      device_code: begun.device_code!,
      resource: RESOURCE,
    })
    for (const token of [access_token, own]) {
      const found = await search(token)
      expect([found.status, found.text]).toEqual([200, expect.stringContaining("ann/claude_code:race")])
    }
    // It works only for MCP.
    expect((await call(access_token, "GET", "/v1/me")).status).toBe(401)
    const log = hub.log.join("\n")
    for (const secret of [access_token!, own, "gus@example.com", begun.user_code!]) expect(log).not.toContain(secret)
    expect(log).not.toMatch(/dexh_|eyJ/)
  })

  test("refuses every other token, and says why", async () => {
    const { search, provider, good, hub, team, own } = await hubForMcp()
    const { privateKey } = await generateKeyPair("RS256")
    const { signed } = provider
    const [header, payload, signature] = (await signed(good)).split(".") as [string, string, string]
    const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
    const keys = await (await fetch(`${provider.issuer}/jwks`)).text()
    const hs256 = encoded({ alg: "HS256", kid: "test" })
    const { sub: _, ...nobody } = good
    const bad: Record<string, string> = {
      "another audience": await signed({ ...good, aud: "https://other.example.com/mcp" }),
      "the hub's address without /mcp": await signed({ ...good, aud: HUB_URL }),
      "the hub's client, as an ID token has it": await signed({ ...good, aud: CLIENT }),
      "another issuer": await signed({ ...good, iss: "https://login.example.com" }),
      "no subject": await signed(nobody),
      "it has expired": await signed(good, { seconds: -60 }),
      "another key": await signed(good, { key: privateKey }),
      "a key that is not known": await signed(good, { key: privateKey, kid: "other" }),
      "no signature": `${encoded({ alg: "none" })}.${payload}.`,
      "a signature left out": `${header}.${payload}.`,
      "a public key as a secret": `${hs256}.${payload}.${createHmac("sha256", keys).update(`${hs256}.${payload}`).digest("base64url")}`,
      "another payload": `${header}.${encoded({ ...good, scope: "dex:read", exp: 9_999_999_999 })}.${signature}`,
      "no token at all": "x",
      "a token of the hub's that nobody has": `${own}x`,
    }
    for (const [why, token] of Object.entries(bad)) {
      const refused = await search(token)
      expect([why, refused.status, refused.headers.get("www-authenticate")]).toEqual([
        why,
        401,
        `Bearer error="invalid_token", ${WHERE}`,
      ])
    }
    for (const scope of ["", "openid", "dex:reading", "xdex:read"]) {
      const refused = await search(await signed({ ...good, scope }))
      expect([scope, refused.status, refused.headers.get("www-authenticate")]).toEqual([
        scope,
        403,
        `Bearer error="insufficient_scope", ${WHERE}`,
      ])
    }
    for (const scp of ["a dex:read", ["dex:read"]])
      expect((await search(await signed({ ...good, scope: undefined, scp }))).status).toBe(200)
    // People who never logged in, and people who have left.
    expect((await search(await signed({ ...good, sub: "new" }))).status).toBe(403)
    expect((await search(await signed(good))).status).toBe(200)
    await team.asOwner("update hub.member set disabled_at = now() where name = 'gus'")
    expect((await search(await signed(good))).status).toBe(403)
    expect(hub.log.join("\n")).not.toMatch(/eyJ|dexh_/)
  })

  test("says that it cannot read the provider's keys, rather than that the token is bad", async () => {
    const { search, provider, good } = await hubForMcp()
    const token = await provider.signed(good)
    await provider.stop()
    expect((await search(token)).status).toBe(503)
  })
})
