import { hash } from "node:crypto"
import type { Unit } from "../connectors/connector.ts"

/** A twin's, or that of a unit that was imported from another history. */
const MARKS = /(?:#(?:twin|from)-[0-9a-f]{12})+$/

/**
 * Two roots can hold a file of the same name, and so of the same key. The one that was known first keeps it; the other
 * is kept under a key of its own, made of where it lies.
 */
export function twinOf<U extends Pick<Unit, "key" | "path">>(unit: U): U {
  return { ...unit, key: `${unit.key}#twin-${hash("sha256", unit.path).slice(0, 12)}` }
}

/** As its connector names it: what is twice there is dex's business. */
export function nativeKey(key: string): string {
  return key.replace(MARKS, "")
}
