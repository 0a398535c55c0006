import { randomBytes } from "node:crypto"
import { closeSync, fstatSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { codeOf, DexError, messageOf } from "../../core/error.ts"

/**
 * The token that every caller must show, kept in a file that only its owner can read. Made at the first use; two servers
 * that start at once get the same one. Errors name the file, never the token.
 */
export function tokenIn(file: string): string {
  try {
    return readToken(file)
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw explained(file, error)
  }
  try {
    makeToken(file)
    return readToken(file)
  } catch (error) {
    throw explained(file, error)
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
      throw new DexError("token", `${file} holds no token: one line of 20 or more signs. Remove it, and dex makes one.`)
    return token
  } finally {
    closeSync(fd)
  }
}

/** Linked into place when it is whole: nobody ever reads half a token, and an existing one stays. */
function makeToken(file: string): void {
  const whole = `${file}.${process.pid}-${randomBytes(4).toString("hex")}`
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  try {
    writeFileSync(whole, `${randomBytes(32).toString("base64url")}\n`, { mode: 0o600, flag: "wx", flush: true })
    linkSync(whole, file)
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
  } finally {
    rmSync(whole, { force: true })
  }
}

function explained(file: string, error: unknown): unknown {
  if (error instanceof DexError) return error
  return new DexError(
    "token",
    `The token file ${file} cannot be used (${messageOf(error)}). Make its folder writable, or set DEX_HOME.`,
    { cause: error },
  )
}
