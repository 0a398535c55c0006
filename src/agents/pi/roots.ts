import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function piRoots({ home, env }: Machine): string[] {
  return [join(env.PI_CODING_AGENT_DIR || join(home, ".pi", "agent"), "sessions")]
}
