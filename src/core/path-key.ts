/** Where several spellings of a path lead to one file: macOS and Windows, as they are set up. */
export function isFolding(platform: NodeJS.Platform): boolean {
  return platform === "darwin" || platform === "win32"
}

/**
 * What a path is known by: two spellings of one file have the same key. macOS tells neither capital and small letters apart
 * nor a letter that is composed of two signs from one; Windows neither letters nor slashes. Everywhere else a path is its own key.
 * On a disk that does tell them apart, two files may have one key: what is private is then hidden once too often.
 */
export function pathKey(path: string, platform: NodeJS.Platform = process.platform): string {
  if (!isFolding(platform)) return path
  return foldPath(path, platform).replace(platform === "win32" ? /(?<=[^:\\])\\+$/ : /(?<=.)\/+$/, "")
}

/** The same for a piece of a path, which may end in a slash. */
export function foldPath(piece: string, platform: NodeJS.Platform = process.platform): string {
  if (platform === "darwin") return folded(piece.normalize("NFC"))
  if (platform !== "win32") return piece
  return folded(piece.replaceAll("/", "\\").replace(/^\\\\\?\\(?=[a-z]:)/i, ""))
}

export function isSamePath(a: string, b: string, platform: NodeJS.Platform = process.platform): boolean {
  return a === b || (isFolding(platform) && pathKey(a, platform) === pathKey(b, platform))
}

/** The path, and where it lies below the folder under another spelling of it, with the folder's own. */
export function spelledBelow(folder: string, path: string, platform: NodeJS.Platform = process.platform): string {
  if (!isFolding(platform)) return path
  const separator = platform === "win32" ? /[\\/]/ : /\//
  const base = folder.replace(/(?<=.)[\\/]+$/, "")
  const steps = base.split(separator).length
  // Cut behind as many names as the folder has: the same name may have another length in another spelling.
  let at = -1
  for (let step = 0; step < steps; step++) {
    const next = path.slice(at + 1).search(separator)
    if (next < 0) return path
    at += next + 1
  }
  return isSamePath(path.slice(0, at), base, platform) ? base + path.slice(at) : path
}

/** As these systems compare names: sign by sign, and a sign that would become two stays as it is. */
function folded(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text.toUpperCase()
  return Array.from(text, (sign) => {
    const capital = sign.toUpperCase()
    return Array.from(capital).length === 1 ? capital : sign
  }).join("")
}
