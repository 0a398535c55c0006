import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function geminiCliRoots({ home, env }: Machine): string[] {
  return [join(env.GEMINI_CLI_HOME || home, ".gemini")]
}
