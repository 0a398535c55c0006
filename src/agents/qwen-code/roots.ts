import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

/** Its settings stay in QWEN_HOME when QWEN_RUNTIME_DIR moves its sessions. */
export function qwenCodeFolder({ home, env }: Machine): string {
  return env.QWEN_HOME || join(home, ".qwen")
}

export function qwenCodeRoots(machine: Machine): string[] {
  return [...new Set([machine.env.QWEN_RUNTIME_DIR || qwenCodeFolder(machine), qwenCodeFolder(machine)])]
}
