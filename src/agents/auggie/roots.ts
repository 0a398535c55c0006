import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

/** The same on every system. */
export function auggieRoots({ home }: Machine): string[] {
  return [join(home, ".augment", "sessions")]
}
