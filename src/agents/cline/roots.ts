import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

/** Shared by the command line and the editors' extensions. */
export function clineFolder({ home, env }: Machine): string {
  return env.CLINE_DATA_DIR || join(env.CLINE_DIR || join(home, ".cline"), "data")
}

export function clineRoots(machine: Machine): string[] {
  return [join(clineFolder(machine), "sessions")]
}
