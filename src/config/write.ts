import { closeSync, fsyncSync, mkdirSync, openSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { DexError, messageOf } from "../core/error.ts"
import type { Home } from "./home.ts"
import { loadSettings, oldSetting, readObject } from "./load.ts"
import { isKey, type ServerKind } from "./secret.ts"
import { SETTINGS, type SettingName, type SettingValue } from "./settings.ts"

/**
 * Stores one setting in the user's file and removes its old names. If the value is undefined or the default, removes the setting.
 * Keeps the rest of the file. The file is complete at every moment, and only its owner can read it.
 */
export function writeSetting(file: string, name: SettingName, value: SettingValue | undefined): void {
  const problems: string[] = []
  const given = Object.entries(readObject(file, problems))
  if (problems.length > 0)
    throw new DexError("config", `${problems[0]!.replace(" The file was ignored.", "")} Fix or remove it first.`)
  const otherSettings = given.filter(([key]) => key !== name && oldSetting(key)?.currentName !== name)
  const chosenSetting: typeof given = value === undefined || value === SETTINGS[name].default ? [] : [[name, value]]
  replaceFile(file, `${JSON.stringify(Object.fromEntries([...otherSettings, ...chosenSetting]), undefined, 2)}\n`)
}

/** Returns the value of the new setting after the old one is set to this value or, if undefined, removed. */
export function convertSetting(
  file: string,
  oldName: string,
  value: SettingValue | undefined,
): SettingValue | undefined {
  const { currentName, convert } = oldSetting(oldName)!
  const soFar = String(loadSettings({ file, env: {} }).settings[currentName])
  return convert(value, soFar, soFar === "off" ? undefined : soFar) || undefined
}

/** Stores a server's key in a separate file, which only its owner can read. Returns the path of the file. */
export function writeKey(home: Pick<Home, "dir" | "config">, server: ServerKind, key: string): string {
  if (!isKey(key))
    throw new DexError(
      "key",
      "That is not a key. A key is one line of letters, digits and symbols. Nothing was changed.",
    )
  const file = join(home.dir, `${server}.key`)
  replaceFile(file, `${key}\n`)
  writeSetting(home.config, `${server}.api_key_from`, convertSetting(home.config, `${server}.api_key_file`, file))
  return file
}

/** Replaces one of dex's small files atomically. Only its owner can read the file. */
export function replaceFile(path: string, content: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const target = resolveLink(path)
    const temporary = `${target}.${process.pid}.new`
    try {
      const fd = openSync(temporary, "w", 0o600)
      try {
        writeFileSync(fd, content) // writeFileSync writes everything or throws; writeSync may write only a part
        fsyncSync(fd)
      } finally {
        closeSync(fd)
      }
      renameSync(temporary, target)
    } finally {
      rmSync(temporary, { force: true })
    }
  } catch (error) {
    throw new DexError(
      "config",
      `${path} cannot be written (${messageOf(error)}). Nothing was changed. Check the file's permissions and the free space on the disk.`,
      {
        cause: error,
      },
    )
  }
}

/** Returns the file that a link leads to. People who keep their settings elsewhere link to them, and the link must stay. */
function resolveLink(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path // the file does not exist yet
  }
}
