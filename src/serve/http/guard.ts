import { createHash, timingSafeEqual } from "node:crypto"

/** `publicName`: how clients reach it when TLS ends in front of it, as `dex.example.com` or `dex.example.com:8443`. */
export type ServerAddress = { host: string; port: number; publicName?: string | undefined }

export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i.test(host)
}

/** An address as it stands in a URL. */
export function inUrl(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host
}

/**
 * Says what is foreign about a request, if anything. A page of another site must not reach this server, neither across
 * origins nor by a name of its own that leads here (DNS rebinding). Programs send no Origin; a page without one of its
 * own sends `null`, which is foreign.
 */
export function foreignTo(
  place: ServerAddress,
): (headers: { host?: string; origin?: string }) => "Host" | "Origin" | undefined {
  const names = ["localhost", "127.0.0.1", "[::1]", ...(isLoopback(place.host) ? [inUrl(place.host)] : [])]
  const hosts = new Set(names.flatMap((name) => (place.port === 80 ? [name, `${name}:80`] : [`${name}:${place.port}`])))
  const origins = new Set([...hosts].map((host) => `http://${host}`))
  const name = place.publicName?.toLowerCase()
  if (name !== undefined) {
    hosts.add(name)
    if (!/:\d+$/.test(name)) hosts.add(`${name}:443`)
    origins.add(`https://${name}`)
  }
  return ({ host = "", origin }) => {
    if (!hosts.has(host.toLowerCase())) return "Host"
    return origin === undefined || origins.has(origin.toLowerCase()) ? undefined : "Origin"
  }
}

/** Takes as long for a wrong token as for the right one, whatever their lengths. */
export function bearerOf(token: string): (authorization: string | undefined) => boolean {
  const wanted = digest(token)
  return (authorization = "") => timingSafeEqual(digest(/^Bearer ([!-~]+)$/i.exec(authorization)?.[1] ?? ""), wanted)
}

export type Rate = { burst: number; perSecond: number }

/** A token bucket. The answer is how long to wait, in milliseconds; 0: go on. */
export function bucketOf({ burst, perSecond }: Rate, now: () => number): () => number {
  let left = burst
  let at = now()
  return () => {
    const time = now()
    left = Math.min(burst, left + (Math.max(0, time - at) / 1000) * perSecond)
    at = time
    if (left < 1) return Math.ceil(((1 - left) / perSecond) * 1000)
    left--
    return 0
  }
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest()
}
