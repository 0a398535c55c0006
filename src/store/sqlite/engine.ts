import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname } from "node:path"
import Database from "better-sqlite3"

export type Db = Database.Database
export type Statement = Database.Statement

/**
 * Opens SQLite. The driver's JavaScript is part of the bundle, since Node takes longer to find its fifteen files than to answer a
 * query; only the native part is looked up in the installed package.
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

/** Searches as Node would. Node's own lookup is the fallback, because it takes 3 ms of every start. */
function driverFolder(from: string | undefined): string {
  for (let folder = from, last = ""; folder !== undefined && folder !== last; last = folder, folder = dirname(folder)) {
    const found = `${folder}/node_modules/better-sqlite3/`
    if (existsSync(`${found}package.json`)) return found
  }
  return createRequire(import.meta.url)
    .resolve("better-sqlite3/package.json")
    .slice(0, -"package.json".length)
}

/**
 * The driver can distinguish musl from glibc too, but it uses a complete diagnostic report of Node, which takes 4 ms of every
 * start.
 */
function platformName(): string {
  if (process.platform !== "linux") return process.platform
  const machine = process.arch === "x64" ? "x86_64" : "aarch64"
  return existsSync(`/lib/ld-musl-${machine}.so.1`) ? "linuxmusl" : "linux"
}
