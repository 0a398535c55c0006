import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function kimiCodeFolder({ home, env }: Machine): string {
  return env.KIMI_CODE_HOME || join(home, ".kimi-code")
}

export function kimiCodeRoots(machine: Machine): string[] {
  return [join(kimiCodeFolder(machine), "sessions")]
}
