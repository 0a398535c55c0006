/** Returns true if this platform treats several spellings of a path as one file, as macOS and Windows do by default. */
export function foldsPaths(platform: NodeJS.Platform): boolean {
  return platform === "darwin" || platform === "win32"
}

/**
 * Returns the same key for all spellings of one file. macOS ignores case and Unicode composition; Windows ignores case and the
 * kind of slash. Elsewhere a path is its own key. If a macOS or Windows disk is case-sensitive, two files may share a key, and
 * dex may then hide something that is not private.
 */
export function pathKey(path: string, platform: NodeJS.Platform = process.platform): string {
  if (!foldsPaths(platform)) return path
  return foldPath(path, platform).replace(platform === "win32" ? /(?<=[^:\\])\\+$/ : /(?<=.)\/+$/, "")
}

/** Like `pathKey`, for a piece of a path, which may end in a slash. */
export function foldPath(piece: string, platform: NodeJS.Platform = process.platform): string {
  if (platform === "darwin") return foldCase(piece.normalize("NFC"))
  if (platform !== "win32") return piece
  return foldCase(piece.replaceAll("/", "\\").replace(/^\\\\\?\\(?=[a-z]:)/i, ""))
}

export function isSamePath(a: string, b: string, platform: NodeJS.Platform = process.platform): boolean {
  return a === b || (foldsPaths(platform) && pathKey(a, platform) === pathKey(b, platform))
}

/** If the path is inside the folder under another spelling, returns it with the folder's own spelling. */
export function withFolderSpelling(folder: string, path: string, platform: NodeJS.Platform = process.platform): string {
  if (!foldsPaths(platform)) return path
  const separator = platform === "win32" ? /[\\/]/ : /\//
  const base = folder.replace(/(?<=.)[\\/]+$/, "")
  const segmentCount = base.split(separator).length
  // Count path segments instead of characters, because two spellings of a segment may differ in length.
  let end = -1
  for (let i = 0; i < segmentCount; i++) {
    const next = path.slice(end + 1).search(separator)
    if (next < 0) return path
    end += next + 1
  }
  return isSamePath(path.slice(0, end), base, platform) ? base + path.slice(end) : path
}

/**
 * Folds case as macOS and Windows do: character by character. A character whose capital would be two characters stays as it is.
 */
function foldCase(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text.toUpperCase()
  return Array.from(text, (character) => {
    const capital = character.toUpperCase()
    return Array.from(capital).length === 1 ? capital : character
  }).join("")
}
