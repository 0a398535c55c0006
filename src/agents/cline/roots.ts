import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"
import { userFolders } from "../kit/vscode-folders.ts"

/** Shared by the command line and the editors' extensions. */
export function clineFolder({ home, env }: Machine): string {
  return env.CLINE_DATA_DIR || join(env.CLINE_DIR || join(home, ".cline"), "data")
}

/** Sessions since version 3, and the tasks of versions before it: at first each editor kept its own. */
export function clineRoots(machine: Machine): string[] {
  const editors = userFolders(machine, ["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"])
  const tasks = editors.map((user) => join(user, "globalStorage", "saoudrizwan.claude-dev", "tasks"))
  return [join(clineFolder(machine), "sessions"), join(clineFolder(machine), "tasks"), ...tasks]
}
