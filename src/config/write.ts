import { closeSync, fsyncSync, mkdirSync, openSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { DexError, messageOf } from "../core/error.ts"
import type { Home } from "./home.ts"
import { loadSettings, oldSetting, readObject } from "./load.ts"
import { isKey, type KeyFor } from "./secret.ts"
import { SETTINGS, type SettingName, type SettingValue } from "./settings.ts"

/**
 * Stores one setting in the user's file, or removes it (undefined, or the default), and removes its old names. Keeps the rest of the
 * file. The file is complete at every moment, and only its owner can read it.
 */
export function writeSetting(file: string, name: SettingName, value: SettingValue | undefined): void {
  const problems: string[] = []
  const given = Object.entries(readObject(file, problems))
  if (problems.length > 0)
    throw new DexError("config", `${problems[0]!.replace(" All of it was ignored.", "")} Fix or remove it first.`)
  const others = given.filter(([one]) => one !== name && oldSetting(one)?.now !== name)
  const chosen: typeof given = value === undefined || value === SETTINGS[name].default ? [] : [[name, value]]
  replaceFile(file, `${JSON.stringify(Object.fromEntries([...others, ...chosen]), undefined, 2)}\n`)
}

/** Returns the value of the new setting after the old one is set to this value or, if undefined, removed. */
export function convertSetting(file: string, old: string, value: SettingValue | undefined): SettingValue | undefined {
  const { now, convert } = oldSetting(old)!
  const soFar = String(loadSettings({ file, env: {} }).settings[now])
  return convert(value, soFar, soFar === "off" ? undefined : soFar) || undefined
}

/** Stores a server's key in its own file, which only its owner can read. Returns that file. */
export function writeKey(home: Pick<Home, "dir" | "config">, of: KeyFor, key: string): string {
  if (!isKey(key))
    throw new DexError(
      "key",
      "That is not a key. A key is one line of letters, digits and symbols. Nothing was changed.",
    )
  const file = join(home.dir, `${of}.key`)
  replaceFile(file, `${key}\n`)
  writeSetting(home.config, `${of}.api_key_from`, convertSetting(home.config, `${of}.api_key_file`, file))
  return file
}

/** Writes a small file of dex atomically. Only its owner can read it. */
export function replaceFile(path: string, content: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const target = resolveLink(path)
    const temporary = `${target}.${process.pid}.new`
    try {
      const fd = openSync(temporary, "w", 0o600)
      try {
        writeFileSync(fd, content) // writes everything or throws; writeSync may write only a part
        fsyncSync(fd)
      } finally {
        closeSync(fd)
      }
      renameSync(temporary, target)
    } finally {
      rmSync(temporary, { force: true })
    }
  } catch (error) {
    throw new DexError("config", `${path} cannot be written (${messageOf(error)}). Nothing was changed.`, {
      cause: error,
    })
  }
}

/** Returns the file that a link leads to. People who keep their settings elsewhere link to them, and the link must stay. */
function resolveLink(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path // not there yet
  }
}
