import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function grokRoots({ home, env }: Machine): string[] {
  return [join(env.GROK_HOME || join(home, ".grok"), "sessions")]
}
