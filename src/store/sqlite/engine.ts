import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname } from "node:path"
import Database from "better-sqlite3"

export type Db = Database.Database
export type Statement = Database.Statement

/**
 * Opens a database. The driver's JavaScript is part of the bundle, because finding its fifteen files would take Node longer than
 * a query does; only the native part is looked up in the installed package.
 */
export function openSqlite(
  path: string,
  options: { timeout?: number; readonly?: boolean; fileMustExist?: boolean } = {},
): Db {
  return new Database(path, { ...options, nativeBinding: NATIVE_BINDING })
}

const NATIVE_BINDING = nativeBindingPath()

function nativeBindingPath(): string {
  const folder = driverFolder(import.meta.dirname)
  const prebuilt = `${folder}prebuilds/${platformName()}-${process.arch}.node`
  return existsSync(prebuilt) ? prebuilt : `${folder}build/Release/better_sqlite3.node`
}

/** Searches the folders as Node does. Node's own lookup is only the fallback, because it would add 3 ms to every start. */
function driverFolder(from: string | undefined): string {
  for (
    let folder = from, previous = "";
    folder !== undefined && folder !== previous;
    previous = folder, folder = dirname(folder)
  ) {
    const candidate = `${folder}/node_modules/better-sqlite3/`
    if (existsSync(`${candidate}package.json`)) return candidate
  }
  return createRequire(import.meta.url)
    .resolve("better-sqlite3/package.json")
    .slice(0, -"package.json".length)
}

/**
 * Returns the platform's name as it appears in the names of prebuilt files. The driver can distinguish musl from glibc too, but
 * for that it creates a complete diagnostic report in Node, which would add 4 ms to every start.
 */
function platformName(): string {
  if (process.platform !== "linux") return process.platform
  const machine = process.arch === "x64" ? "x86_64" : "aarch64"
  return existsSync(`/lib/ld-musl-${machine}.so.1`) ? "linuxmusl" : "linux"
}
