import type { Machine } from "../kit/connector.ts"
import { userFolders } from "../kit/vscode-folders.ts"

export function vscodeRoots(machine: Machine): string[] {
  return userFolders(machine, ["Code", "Code - Insiders", "VSCodium"])
}
