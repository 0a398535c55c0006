import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function copilotFolder({ home, env }: Machine): string {
  return env.COPILOT_HOME || join(home, ".copilot")
}

export function copilotRoots(machine: Machine): string[] {
  return [join(copilotFolder(machine), "session-state")]
}
