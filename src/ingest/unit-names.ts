import { hash } from "node:crypto"
import type { Unit } from "../agents/kit/connector.ts"
import { redactText } from "../redact/redact.ts"

// The names of units in the history. Usually the connector's; but two units may share a name, and a name can contain a
// secret.

/** A unit with its stored name. `nativeKey` and `shownPath` are set if that differs from the source's own. */
export type NamedUnit = Unit & { nativeKey?: string; shownPath?: string }

/** Suffixes that dex adds to a key: for a second file of that name, an imported one, one whose own name cannot be stored. */
const MARKS = /(?:#(?:twin|from|name)-[0-9a-f]{12})+$/

/** A file whose name contains a secret is stored under the redacted name and a hash, by which it is found again. */
export function named<U extends Pick<Unit, "key" | "path">>(unit: U): U & Pick<NamedUnit, "nativeKey" | "shownPath"> {
  const key = redactText(unit.key)
  const shownPath = redactText(unit.path)
  if (key === unit.key && shownPath === unit.path) return unit
  const marked = key === unit.key ? key : `${key}#name-${shortHash(unit.key)}`
  return { ...unit, key: marked, nativeKey: unit.key, shownPath }
}

/**
 * Two roots can contain a file of the same name, and so with the same key. The first keeps it; the other gets a key
 * that includes a hash of its path.
 */
export function twinOf(unit: NamedUnit): NamedUnit {
  return { ...unit, key: `${unit.key}#twin-${shortHash(unit.path)}` }
}

/** The connector's name for the unit, except for a redacted secret, without the suffixes that dex adds. */
export function nativeKey(key: string): string {
  return key.replace(MARKS, "")
}

export function storedPath({ path, shownPath }: NamedUnit): string {
  return shownPath ?? path
}

function shortHash(text: string): string {
  return hash("sha256", text).slice(0, 12)
}
