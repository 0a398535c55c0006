import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseObject, string } from "../../core/record.ts"
import type { Machine, Unreadable } from "./connector.ts"
import { textAt } from "./folder.ts"

// Where VS Code, and editors that are made of it, keep what belongs to the user.

const MAX_WORKSPACE_BYTES = 1 << 20

/** The `User` folder of each of these editors, by the name that its program has (`Code - Insiders`). */
export function userFolders({ home, env, platform }: Machine, editors: readonly string[]): string[] {
  const config =
    platform === "darwin"
      ? join(home, "Library", "Application Support")
      : platform === "win32"
        ? env.APPDATA || join(home, "AppData", "Roaming")
        : env.XDG_CONFIG_HOME || join(home, ".config")
  return editors.map((editor) => join(config, editor, "User"))
}

/** The folder that a folder of `workspaceStorage` belongs to. An empty window has none. */
export function workspaceFolder(dir: string, report: (problem: Unreadable) => void): string | undefined {
  const about = parseObject(textAt(join(dir, "workspace.json"), MAX_WORKSPACE_BYTES, report) ?? "")
  return folderOfWorkspace(string(about?.folder), string(about?.workspace))
}

/** The path of a `file:` address; any other address as it is, so that a remote folder is not taken for a local one. */
function folderOfUri(uri: string): string {
  if (!uri.startsWith("file:")) return uri
  try {
    return fileURLToPath(uri)
  } catch {
    return uri // an address of another platform
  }
}

/** What workspace.json names: a folder, or a file that lists several. */
export function folderOfWorkspace(folder: string | undefined, workspace: string | undefined): string | undefined {
  if (folder !== undefined) return folderOfUri(folder)
  return workspace === undefined ? undefined : dirname(folderOfUri(workspace))
}
