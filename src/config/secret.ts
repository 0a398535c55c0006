import { closeSync, existsSync } from "node:fs"
import { join } from "node:path"
import { DexError, messageOf } from "../core/error.ts"
import { openFile, RefusedFile, readOpened } from "../core/read-file.ts"
import { isVariable, SETTINGS, type Settings, splitNames } from "./settings.ts"

/** The kinds of servers that can have a key. */
export const SERVER_KINDS = ["embed", "rerank", "llm"] as const
export type ServerKind = (typeof SERVER_KINDS)[number]
/** The location of a key: `place` is the name of an environment variable or the path of a file. */
export type KeyPlace = { from: "environment" | "file"; place: string }

/** The environment in which to look for keys, and the home folder that replaces ~ in paths. */
export type KeyContext = { env: Record<string, string | undefined>; home: string }

/**
 * Returns the location of a server's key without reading the key, or undefined if there is no key and the settings name no file.
 */
export function keyPlace(server: ServerKind, settings: Settings, { env, home }: KeyContext): KeyPlace | undefined {
  const name = `${server}.api_key_from` as const
  const namedPlaces = splitNames(settings[name])
  const places = namedPlaces.some(isVariable) ? namedPlaces : [SETTINGS[name].default, ...namedPlaces]
  const keyPlaces = places.map(
    (place): KeyPlace =>
      isVariable(place) ? { from: "environment", place } : { from: "file", place: expandTilde(place, home) },
  )
  const hasKey = ({ from, place }: KeyPlace) => (from === "environment" ? Boolean(env[place]) : existsSync(place))
  // If there is no key anywhere, return a file that was named: reading it fails with a clear error, while a server would only
  // refuse requests without a key.
  return keyPlaces.find(hasKey) ?? keyPlaces.find(({ from }) => from === "file")
}

/** Reads the key from the first place that has one. Errors name the place, never the key. */
export function readKey(server: ServerKind, settings: Settings, context: KeyContext): string | undefined {
  const location = keyPlace(server, settings, context)
  if (!location) return undefined
  const key = (
    location.from === "environment" ? context.env[location.place]! : readPrivate(server, location.place)
  ).trim()
  if (!isKey(key))
    throw new DexError(
      "key",
      `${location.place} does not contain a key. A key is one line of letters, digits and symbols.`,
    )
  return key
}

/** Returns true if the text is one line of printable ASCII without spaces. */
export function isKey(text: string): boolean {
  return /^[!-~]+$/.test(text)
}

const MAX_KEY_FILE_BYTES = 64 << 10

function readPrivate(server: ServerKind, file: string): string {
  try {
    const openedFile = openFile(file)
    try {
      if (process.platform !== "win32" && openedFile.stat.mode & 0o077)
        throw new DexError("key", `Others can read the key in ${file}, so dex does not use it. Run: chmod 600 ${file}`)
      return readOpened(openedFile, MAX_KEY_FILE_BYTES).toString("utf8")
    } finally {
      closeSync(openedFile.fd)
    }
  } catch (error) {
    if (error instanceof DexError) throw error
    if (error instanceof RefusedFile)
      throw new DexError("key", `dex cannot read a key from ${file}, because it is ${error.message}.`)
    throw new DexError(
      "key",
      `The key file ${file} cannot be read (${messageOf(error)}). Create it, or run: dex config unset ${server}.api_key_from`,
      { cause: error },
    )
  }
}

/** Replaces ~ in a path that the user wrote. */
export function expandTilde(file: string, home: string): string {
  return file === "~" || file.startsWith("~/") ? join(home, file.slice(1)) : file
}
