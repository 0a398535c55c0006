import { hash } from "node:crypto"
import type { Unit } from "../agents/kit/connector.ts"
import { redactText } from "../redact/redact.ts"

/**
 * A unit with its key in the history. If the connector's key or path contains a secret, `nativeKey` is the connector's key, and
 * `shownPath` is the redacted path.
 */
export type NamedUnit = Unit & { nativeKey?: string; shownPath?: string }

/**
 * Matches suffixes that dex adds to a key: for a second file with the same name, an imported file, or a file whose own name
 * cannot be stored.
 */
const KEY_SUFFIXES = /(?:#(?:twin|from|name)-[0-9a-f]{12})+$/

/**
 * The unit with its stored name. A file whose name contains a secret is stored under the redacted name and a hash, by which it is
 * found again.
 */
export function withStoredName<U extends Pick<Unit, "key" | "path">>(
  unit: U,
): U & Pick<NamedUnit, "nativeKey" | "shownPath"> {
  const key = redactText(unit.key)
  const shownPath = redactText(unit.path)
  if (key === unit.key && shownPath === unit.path) return unit
  const storedKey = key === unit.key ? key : `${key}#name-${shortHash(unit.key)}`
  return { ...unit, key: storedKey, nativeKey: unit.key, shownPath }
}

/**
 * A unit with another key. Two roots can contain files with the same name, and so with the same key. The first file keeps that
 * key; the second gets one that includes a hash of its path.
 */
export function withTwinKey(unit: NamedUnit): NamedUnit {
  return { ...unit, key: `${unit.key}#twin-${shortHash(unit.path)}` }
}

/** Returns a unit's key without the suffixes that dex adds. A secret in it stays redacted. */
export function nativeKey(key: string): string {
  return key.replace(KEY_SUFFIXES, "")
}

export function storedPath({ path, shownPath }: NamedUnit): string {
  return shownPath ?? path
}

function shortHash(text: string): string {
  return hash("sha256", text).slice(0, 12)
}
