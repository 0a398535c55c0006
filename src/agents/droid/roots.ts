import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

/** The same on every system. */
export function droidRoots({ home }: Machine): string[] {
  return [join(home, ".factory", "sessions"), join(home, ".factory", "projects")]
}
