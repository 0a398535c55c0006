import { hash } from "node:crypto"
import type { Unit } from "../agents/kit/connector.ts"
import { redactText } from "../redact/redact.ts"

// What a unit is called in the history. Mostly as its connector calls it; but two may have one name, and a name can be a
// secret.

/** A unit with the name that is stored. `nativeKey` and `shownPath` are set where that is not the source's own. */
export type NamedUnit = Unit & { nativeKey?: string; shownPath?: string }

/** What dex adds to a key: a second file of that name, an imported one, one whose own name cannot be kept. */
const MARKS = /(?:#(?:twin|from|name)-[0-9a-f]{12})+$/

/** A file whose name holds a secret is stored under the redacted name and a hash, which finds it again. */
export function named<U extends Pick<Unit, "key" | "path">>(unit: U): U & Pick<NamedUnit, "nativeKey" | "shownPath"> {
  const key = redactText(unit.key)
  const shownPath = redactText(unit.path)
  if (key === unit.key && shownPath === unit.path) return unit
  const marked = key === unit.key ? key : `${key}#name-${shortHash(unit.key)}`
  return { ...unit, key: marked, nativeKey: unit.key, shownPath }
}

/**
 * Two roots can hold a file of the same name, and so of the same key. The one that was known first keeps it; the other
 * is kept under a key of its own, made of where it lies.
 */
export function twinOf(unit: NamedUnit): NamedUnit {
  return { ...unit, key: `${unit.key}#twin-${shortHash(unit.path)}` }
}

/** As its connector names it, but for a secret in it. What dex adds is dex's business. */
export function nativeKey(key: string): string {
  return key.replace(MARKS, "")
}

export function storedPath({ path, shownPath }: NamedUnit): string {
  return shownPath ?? path
}

function shortHash(text: string): string {
  return hash("sha256", text).slice(0, 12)
}
