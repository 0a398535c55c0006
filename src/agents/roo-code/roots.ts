import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"
import { userFolders } from "../kit/vscode-folders.ts"

/** An extension's storage, in every editor that may have it, and where an editor's other half runs on another machine. */
export function rooCodeRoots(machine: Machine): string[] {
  const editors = userFolders(machine, ["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"])
  const servers = [".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server"]
  const remote = servers.map((name) => join(machine.home, name, "data", "User"))
  return [...editors, ...remote].map((user) => join(user, "globalStorage", "rooveterinaryinc.roo-cline", "tasks"))
}
