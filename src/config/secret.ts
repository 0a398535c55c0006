import { closeSync, existsSync } from "node:fs"
import { join } from "node:path"
import { DexError, messageOf } from "../core/error.ts"
import { openFile, RefusedFile, readOpened } from "../core/read-file.ts"
import { isVariable, SETTINGS, type Settings, splitNames } from "./settings.ts"

/** The kinds of servers that can have a key. */
export const KEYS_FOR = ["embed", "rerank", "llm"] as const
export type KeyFor = (typeof KEYS_FOR)[number]
/** The location of a key: `place` is the name of an environment variable or the path of a file. */
export type KeyPlace = { from: "environment" | "file"; place: string }

/** The environment in which to look for keys, and the home folder that replaces ~ in paths. */
export type KeyContext = { env: Record<string, string | undefined>; home: string }

/** Returns the location of a server's key, without reading the key; undefined if there is none. */
export function keyPlace(of: KeyFor, settings: Settings, { env, home }: KeyContext): KeyPlace | undefined {
  const name = `${of}.api_key_from` as const
  const named = splitNames(settings[name])
  const places = named.some(isVariable) ? named : [SETTINGS[name].default, ...named]
  const keyPlaces = places.map(
    (place): KeyPlace =>
      isVariable(place) ? { from: "environment", place } : { from: "file", place: inHome(place, home) },
  )
  const hasKey = ({ from, place }: KeyPlace) => (from === "environment" ? Boolean(env[place]) : existsSync(place))
  // If there is no key anywhere, return a file that was named: reading it fails with a clear error, while a server would only
  // refuse requests without a key.
  return keyPlaces.find(hasKey) ?? keyPlaces.find(({ from }) => from === "file")
}

/** The key, from the first place that has one. Errors name the place, never the key. */
export function readKey(of: KeyFor, settings: Settings, context: KeyContext): string | undefined {
  const location = keyPlace(of, settings, context)
  if (!location) return undefined
  const key = (location.from === "environment" ? context.env[location.place]! : readPrivate(of, location.place)).trim()
  if (!isKey(key))
    throw new DexError("key", `${location.place} does not contain a key: one line of letters, digits and symbols.`)
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
      `The key file ${file} cannot be read (${messageOf(error)}). Create it, or run: dex config unset ${of}.api_key_from`,
      { cause: error },
    )
  }
}

/** Replaces ~ in a path that the user wrote. */
export function inHome(file: string, home: string): string {
  return file === "~" || file.startsWith("~/") ? join(home, file.slice(1)) : file
}
