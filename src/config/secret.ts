import { closeSync, existsSync } from "node:fs"
import { join } from "node:path"
import { DexError, messageOf } from "../core/error.ts"
import { openFile, RefusedFile, readOpened } from "../core/read-file.ts"
import { isVariable, SETTINGS, type Settings, splitNames } from "./settings.ts"

export const KEYS_FOR = ["embed", "rerank", "llm"] as const
export type KeyFor = (typeof KEYS_FOR)[number]
export type KeyPlace = { from: "environment" | "file"; place: string }

/** `home` replaces ~. */
export type Where = { env: Record<string, string | undefined>; home: string }

/** Where a server's key is stored, without reading it; undefined if there is none. */
export function keyPlace(of: KeyFor, settings: Settings, { env, home }: Where): KeyPlace | undefined {
  const name = `${of}.api_key_from` as const
  const named = splitNames(settings[name])
  const places = named.some(isVariable) ? named : [SETTINGS[name].default, ...named]
  const found = places.map(
    (place): KeyPlace =>
      isVariable(place) ? { from: "environment", place } : { from: "file", place: inHome(place, home) },
  )
  const hasKey = ({ from, place }: KeyPlace) => (from === "environment" ? Boolean(env[place]) : existsSync(place))
  // Reading a file that is missing is an error: without its key, a server would only refuse.
  return found.find(hasKey) ?? found.find(({ from }) => from === "file")
}

/** The key, from the first place that has one. Errors name the place, never the key. */
export function readKey(of: KeyFor, settings: Settings, where: Where): string | undefined {
  const found = keyPlace(of, settings, where)
  if (!found) return undefined
  const key = (found.from === "environment" ? where.env[found.place]! : readPrivate(of, found.place)).trim()
  if (!isKey(key))
    throw new DexError("key", `${found.place} does not contain a key: one line of letters, digits and symbols.`)
  return key
}

/** One line of printable ASCII without spaces. */
export function isKey(text: string): boolean {
  return /^[!-~]+$/.test(text)
}

const MOST_BYTES = 64 << 10

function readPrivate(of: KeyFor, file: string): string {
  try {
    const opened = openFile(file)
    try {
      if (process.platform !== "win32" && opened.stat.mode & 0o077)
        throw new DexError("key", `Others can read the key in ${file}, so it is not used. Run: chmod 600 ${file}`)
      return readOpened(opened, MOST_BYTES).toString("utf8")
    } finally {
      closeSync(opened.fd)
    }
  } catch (error) {
    if (error instanceof DexError) throw error
    if (error instanceof RefusedFile)
      throw new DexError("key", `${file} is not a file with a key in it: it is ${error.message}.`)
    throw new DexError(
      "key",
      `The key file ${file} cannot be read (${messageOf(error)}). Make it, or: dex config unset ${of}.api_key_from`,
      { cause: error },
    )
  }
}

/** Replaces ~ in a path that the user wrote. */
export function inHome(file: string, home: string): string {
  return file === "~" || file.startsWith("~/") ? join(home, file.slice(1)) : file
}
