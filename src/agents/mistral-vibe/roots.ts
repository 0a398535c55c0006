import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function vibeRoots({ home, env }: Machine): string[] {
  return [join(env.VIBE_HOME?.replace(/^~(?=$|[\\/])/, home) || join(home, ".vibe"), "logs", "session")]
}
