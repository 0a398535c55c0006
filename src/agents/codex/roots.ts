import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function codexRoots({ home, env }: Machine): string[] {
  return [env.CODEX_HOME || join(home, ".codex")]
}
