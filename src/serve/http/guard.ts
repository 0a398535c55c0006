import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import { closeSync, fstatSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { codeOf, DexError, messageOf } from "../../core/error.ts"

/** `publicName` is the name that clients use if a proxy terminates TLS, such as `dex.example.com` or `dex.example.com:8443`. */
export type ServerAddress = { host: string; port: number; publicName?: string | undefined }

export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i.test(host)
}

/** An address in the form that URLs use. */
export function hostInUrl(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host
}

/**
 * Returns a check for requests from other sites. Its result is the header that gives such a request away; undefined means that
 * the request may pass. A page of another site must not reach this server, neither across origins nor through a name of its own
 * that resolves to this machine (DNS rebinding). Programs send no Origin. A page without an origin of its own sends `null`, which
 * is refused.
 */
export function foreignHeader(
  address: ServerAddress,
): (headers: { host?: string; origin?: string }) => "Host" | "Origin" | undefined {
  const names = ["localhost", "127.0.0.1", "[::1]", ...(isLoopback(address.host) ? [hostInUrl(address.host)] : [])]
  const hosts = new Set(
    names.flatMap((name) => (address.port === 80 ? [name, `${name}:80`] : [`${name}:${address.port}`])),
  )
  const origins = new Set([...hosts].map((host) => `http://${host}`))
  const name = address.publicName?.toLowerCase()
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

/** Returns a check that takes equally long for a wrong token and for the right one, whatever their lengths. */
export function createTokenCheck(token: string): (authorization: string | undefined) => boolean {
  const expected = digest(token)
  return (authorization = "") => timingSafeEqual(digest(/^Bearer ([!-~]+)$/i.exec(authorization)?.[1] ?? ""), expected)
}

export type Rate = { burst: number; perSecond: number }

/** Returns a rate limit: a function that returns how long a request must wait, in milliseconds. 0 means that it may proceed. */
export function createTokenBucket({ burst, perSecond }: Rate, now: () => number): () => number {
  let remaining = burst
  let updatedAt = now()
  return () => {
    const time = now()
    remaining = Math.min(burst, remaining + (Math.max(0, time - updatedAt) / 1000) * perSecond)
    updatedAt = time
    if (remaining < 1) return Math.ceil(((1 - remaining) / perSecond) * 1000)
    remaining--
    return 0
  }
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest()
}

/**
 * The token that every caller must send, stored in a file that only its owner can read. Created on first use; two servers that
 * start at the same time get the same one. Errors name the file, never the token.
 */
export function readOrCreateToken(file: string): string {
  try {
    return readToken(file)
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw tokenFileError(file, error)
  }
  try {
    makeToken(file)
    return readToken(file)
  } catch (error) {
    throw tokenFileError(file, error)
  }
}

function readToken(file: string): string {
  const fd = openSync(file, "r")
  try {
    const stat = fstatSync(fd)
    if (process.platform !== "win32" && stat.mode & 0o077)
      throw new DexError("token", `Others can read the token in ${file}, so it is not used. Run: chmod 600 ${file}`)
    const token = stat.isFile() && stat.size <= 4096 ? readFileSync(fd, "utf8").trim() : ""
    if (!/^[!-~]{20,}$/.test(token))
      throw new DexError(
        "token",
        `${file} does not contain a token (one line of at least 20 characters). Delete it, and dex creates a new one.`,
      )
    return token
  } finally {
    closeSync(fd)
  }
}

/**
 * Writes the token to another file and links it into place, so that nobody reads an incomplete token, and an existing file stays.
 */
function makeToken(file: string): void {
  const temporary = `${file}.${process.pid}-${randomBytes(4).toString("hex")}`
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  try {
    writeFileSync(temporary, `${randomBytes(32).toString("base64url")}\n`, { mode: 0o600, flag: "wx", flush: true })
    linkSync(temporary, file)
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
  } finally {
    rmSync(temporary, { force: true })
  }
}

function tokenFileError(file: string, error: unknown): unknown {
  if (error instanceof DexError) return error
  return new DexError(
    "token",
    `The token file ${file} cannot be used (${messageOf(error)}). Make its folder writable, or set DEX_HOME.`,
    { cause: error },
  )
}
