import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import Database from "better-sqlite3"

export type Db = Database.Database
export type Statement = Database.Statement

/**
 * SQLite itself. The driver's JavaScript is part of our bundle, since Node takes longer to find its fifteen files than
 * to answer a query; only the native part is looked up in the installed package.
 */
export function openSqlite(
  path: string,
  options: { timeout?: number; readonly?: boolean; fileMustExist?: boolean } = {},
): Db {
  return new Database(path, { ...options, nativeBinding: NATIVE_PART })
}

/** What went wrong, in SQLite's or the operating system's own word. */
export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === "string" ? code : ""
}

const NATIVE_PART = nativePart()

function nativePart(): string {
  const home = createRequire(import.meta.url)
    .resolve("better-sqlite3/package.json")
    .slice(0, -"package.json".length)
  const prebuilt = `${home}prebuilds/${platformName()}-${process.arch}.node`
  return existsSync(prebuilt) ? prebuilt : `${home}build/Release/better_sqlite3.node`
}

/** The driver can tell musl from glibc too, but asks Node for a whole diagnostic report, 4 ms of every start. */
function platformName(): string {
  if (process.platform !== "linux") return process.platform
  const machine = process.arch === "x64" ? "x86_64" : "aarch64"
  return existsSync(`/lib/ld-musl-${machine}.so.1`) ? "linuxmusl" : "linux"
}
