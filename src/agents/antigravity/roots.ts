import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

/** The command line's folder, and the editor's. */
export function antigravityRoots({ home }: Machine): string[] {
  return ["antigravity-cli", "antigravity"].map((name) => join(home, ".gemini", name))
}
