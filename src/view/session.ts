import { createHash, randomBytes, timingSafeEqual } from "node:crypto"

export type ViewSession = {
  /** A code that lets one browser in, once, within a minute. */
  makeCode(): string
  /** Returns the cookie for a code. Undefined if the code was used, has expired, or was never given. */
  enter(code: string): string | undefined
  /** Whether a request's Cookie header contains the cookie. */
  isIn(cookies: string | undefined): boolean
  /** Every request that changes something must contain it. */
  actionToken: string
  isActionToken(token: string): boolean
}

const COOKIE = "dex_view"
export const CODE_LASTS_MS = 60_000
const MAX_CODES = 20

/**
 * Controls who can see the pages. A browser sends a cookie to every port of a host, so this one is bound to a path that only the
 * admitted browser knows: another server on this machine never receives it. Cookie and path end with this process.
 */
export function createSession(base: string, now: () => number): ViewSession {
  const key = randomBytes(32).toString("base64url")
  const actionToken = randomBytes(32).toString("base64url")
  const codes = new Map<string, number>()
  return {
    makeCode() {
      const code = randomBytes(24).toString("base64url")
      codes.set(code, now() + CODE_LASTS_MS)
      for (const [old] of codes) if (codes.size > MAX_CODES) codes.delete(old)
      return code
    },
    enter(code) {
      const until = codes.get(code)
      codes.delete(code)
      if (until === undefined || now() > until) return undefined
      return `${COOKIE}=${key}; Path=${base}; HttpOnly; SameSite=Strict`
    },
    isIn: (cookies = "") =>
      cookies
        .split(/;\s*/)
        .some((cookie) => cookie.startsWith(`${COOKIE}=`) && isSame(cookie.slice(COOKIE.length + 1), key)),
    actionToken,
    isActionToken: (token) => isSame(token, actionToken),
  }
}

/** Compares in constant time. */
export function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest()
  return timingSafeEqual(digest(given), digest(wanted))
}
