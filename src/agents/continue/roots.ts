import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function continueRoots({ home, env }: Machine): string[] {
  return [join(env.CONTINUE_GLOBAL_DIR || join(home, ".continue"), "sessions")]
}
