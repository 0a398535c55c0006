import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname } from "node:path"
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

const NATIVE_PART = nativePart()

function nativePart(): string {
  const home = driverFolder(import.meta.dirname)
  const prebuilt = `${home}prebuilds/${platformName()}-${process.arch}.node`
  return existsSync(prebuilt) ? prebuilt : `${home}build/Release/better_sqlite3.node`
}

/** As Node would look for it. Node itself is asked only where it is not found so: that takes 3 ms of every start. */
function driverFolder(from: string | undefined): string {
  for (let folder = from, last = ""; folder !== undefined && folder !== last; last = folder, folder = dirname(folder)) {
    const found = `${folder}/node_modules/better-sqlite3/`
    if (existsSync(`${found}package.json`)) return found
  }
  return createRequire(import.meta.url)
    .resolve("better-sqlite3/package.json")
    .slice(0, -"package.json".length)
}

/** The driver can tell musl from glibc too, but asks Node for a whole diagnostic report, 4 ms of every start. */
function platformName(): string {
  if (process.platform !== "linux") return process.platform
  const machine = process.arch === "x64" ? "x86_64" : "aarch64"
  return existsSync(`/lib/ld-musl-${machine}.so.1`) ? "linuxmusl" : "linux"
}
