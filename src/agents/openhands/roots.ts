import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function openhandsRoots({ home, env }: Machine): string[] {
  const own = env.OPENHANDS_PERSISTENCE_DIR || join(home, ".openhands")
  return [env.OPENHANDS_CONVERSATIONS_DIR || join(own, "conversations")]
}
