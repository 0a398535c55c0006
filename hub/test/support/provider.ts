import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { exportJWK, generateKeyPair, SignJWT } from "jose"
import { Provider } from "oidc-provider"
import { onTestFinished } from "vitest"

// A real identity provider on loopback: anybody logs in by typing a name, and gets the claims in `people`.

export type Claims = { email?: string; email_verified?: boolean; name?: string; groups?: string[] }

export const CLIENT = "dex-hub"
const SCOPE = "dex:read"

export type TestProvider = Awaited<ReturnType<typeof startProvider>>

/** `codeSeconds` is how long a code works before somebody types it. */
export async function startProvider(people: Record<string, Claims>, { codeSeconds = 600 } = {}) {
  const { privateKey } = await generateKeyPair("RS256", { extractable: true })
  const key = { ...(await exportJWK(privateKey)), kid: "test", alg: "RS256", use: "sig" }
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => closed(server))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT,
        token_endpoint_auth_method: "none",
        grant_types: ["urn:ietf:params:oauth:grant-type:device_code"],
        response_types: [],
        redirect_uris: [],
      },
    ],
    jwks: { keys: [key] },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "groups"] },
    findAccount: (_, id) => ({ accountId: id, claims: async () => ({ sub: id, ...people[id] }) }),
    ttl: { DeviceCode: codeSeconds, Interaction: 600, Grant: 600, Session: 600, AccessToken: 600, IdToken: 600 },
    features: {
      deviceFlow: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, resource) => ({
          scope: SCOPE,
          audience: resource,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "RS256" } },
        }),
        useGrantedResource: () => true,
      },
    },
  })
  const calls = { device: 0, token: 0, slowDowns: 0 }
  provider.use(async (ctx, next) => {
    if (ctx.path === "/device/auth") calls.device++
    if (ctx.path === "/token") calls.token++
    if (ctx.path !== "/token" || calls.slowDowns === 0) return next()
    calls.slowDowns--
    ctx.status = 400
    ctx.body = { error: "slow_down" }
  })
  server.on("request", provider.callback())
  const signed = (claims: object, { key: by = privateKey, seconds = 600, alg = "RS256", kid = "test" } = {}) =>
    new SignJWT({ scope: SCOPE, ...claims })
      .setProtectedHeader({ alg, kid, typ: "at+jwt" })
      .setIssuedAt()
      .setExpirationTime(Math.floor(Date.now() / 1_000) + seconds)
      .sign(by)
  return { issuer, calls, signed, people, stop: () => closed(server) }
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

/** Does what a browser does with the address that `dex hub login` prints: sends every form as this person. */
export async function approve(address: string, who: string, { refuse = false } = {}): Promise<string> {
  const cookies = new Map<string, string>()
  const visit = async (url: string, form?: Record<string, string>): Promise<{ url: string; page: string }> => {
    const response = await fetch(url, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form && { method: "POST", body: new URLSearchParams(form) }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
      if (value === "") cookies.delete(name!)
      else cookies.set(name!, value!)
    }
    const next = response.headers.get("location")
    return next ? visit(new URL(next, url).href) : { url, page: await response.text() }
  }
  let at = await visit(address)
  for (;;) {
    const action = /<form[^>]* action="([^"]*)"/.exec(at.page)?.[1]
    if (action === undefined) return at.page
    const fields = [...at.page.matchAll(/<input[^>]*>/g)].map(([input]) => [
      /name="([^"]*)"/.exec(input)?.[1] ?? "",
      /value="([^"]*)"/.exec(input)?.[1] ?? "",
    ])
    const form: Record<string, string> = Object.fromEntries(fields)
    if ("login" in form) Object.assign(form, { login: who, password: "any" })
    const isRefused = refuse && "confirm" in form
    if (isRefused) Object.assign(form, { confirm: "", abort: "yes" })
    at = await visit(new URL(action, at.url).href, form)
    if (isRefused) return at.page // which asks for another code
  }
}
