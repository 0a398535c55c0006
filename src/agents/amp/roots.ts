import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function ampRoots({ home, env }: Machine): string[] {
  return [join(env.XDG_DATA_HOME || join(home, ".local", "share"), "amp", "threads")]
}
