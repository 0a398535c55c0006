import { readdirSync, realpathSync } from "node:fs"
import { join } from "node:path"

const MAX_FOLDERS = 300

/**
 * The folder that Cursor's name for it stands for: the path without its first slash, where `/`, `.`, `_` and others have
 * become `-`. Told by looking which folders there are; undefined where none fits, or more than one.
 */
export function decodedFolder(
  encoded: string,
  platform: NodeJS.Platform = process.platform,
  top = "/",
): string | undefined {
  const wanted = plain(encoded)
  if (wanted === "") return undefined
  const drive = platform === "win32" ? /^([a-z])-(.+)$/i.exec(wanted) : undefined
  if (platform === "win32" && !drive) return undefined
  const found = new Set<string>()
  const open: { folder: string; rest: string }[] = [
    drive ? { folder: `${drive[1]!.toUpperCase()}:\\`, rest: drive[2]! } : { folder: top, rest: wanted },
  ]
  for (let looked = 0; open.length > 0 && looked < MAX_FOLDERS; looked++) {
    const { folder, rest } = open.pop()!
    for (const name of foldersIn(folder)) {
      const piece = plain(name)
      if (piece === "") continue
      if (rest === piece) found.add(real(join(folder, name)))
      else if (rest.startsWith(`${piece}-`))
        open.push({ folder: join(folder, name), rest: rest.slice(piece.length + 1) })
    }
  }
  return found.size === 1 && open.length === 0 ? [...found][0] : undefined
}

function plain(name: string): string {
  return name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "")
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() || entry.isSymbolicLink() ? [entry.name] : [],
    )
  } catch {
    return [] // not a folder, or not ours to look into: then it cannot be told apart
  }
}

function real(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path // a link that leads nowhere still names the folder
  }
}
