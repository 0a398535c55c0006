import { createHash, randomBytes, timingSafeEqual } from "node:crypto"

export type ViewSession = {
  /** Creates a code that lets one browser in, once, within a minute. */
  makeCode(): string
  /** Returns the cookie for a code. Undefined if the code was used, has expired or never existed. */
  enter(code: string): string | undefined
  /** True if a request's Cookie header contains the cookie. */
  isAdmitted(cookies: string | undefined): boolean
  /** Every request that changes something must contain this token. */
  actionToken: string
  isActionToken(token: string): boolean
}

const COOKIE = "dex_view"
export const CODE_LIFETIME_MS = 60_000
const MAX_CODES = 20

/**
 * Controls who can see the pages. A browser sends a cookie to every port of a host, so this cookie is bound to a path that only
 * the admitted browser knows, and another server on this machine never receives it. The cookie and the path are useless after
 * this process has ended.
 */
export function createSession(base: string, now: () => number): ViewSession {
  const key = randomBytes(32).toString("base64url")
  const actionToken = randomBytes(32).toString("base64url")
  const codes = new Map<string, number>()
  return {
    makeCode() {
      const code = randomBytes(24).toString("base64url")
      codes.set(code, now() + CODE_LIFETIME_MS)
      for (const [old] of codes) if (codes.size > MAX_CODES) codes.delete(old)
      return code
    },
    enter(code) {
      const expiresAt = codes.get(code)
      codes.delete(code)
      if (expiresAt === undefined || now() > expiresAt) return undefined
      return `${COOKIE}=${key}; Path=${base}; HttpOnly; SameSite=Strict`
    },
    isAdmitted: (cookies = "") =>
      cookies
        .split(/;\s*/)
        .some((cookie) => cookie.startsWith(`${COOKIE}=`) && isSameSecret(cookie.slice(COOKIE.length + 1), key)),
    actionToken,
    isActionToken: (token) => isSameSecret(token, actionToken),
  }
}

/** Compares in constant time. */
export function isSameSecret(actual: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest()
  return timingSafeEqual(digest(actual), digest(expected))
}
