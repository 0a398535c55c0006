import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize, sep } from "node:path"

// The source of the npm package: src/, and the agents of packages/more-agents, which are bundled into it. Files of the latter
// have names that begin with more-agents/.

const SRC = join(import.meta.dirname, "../../src")
const MORE = "more-agents"
const MORE_FROM_SRC = join("..", "packages", MORE, "src")

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))
}

export const sourceFiles: readonly string[] = [
  ...filesBelow(SRC),
  ...filesBelow(join(SRC, MORE_FROM_SRC)).map((file) => join(MORE, file)),
]

function fromSrc(file: string): string {
  return file.startsWith(MORE + sep) ? join(MORE_FROM_SRC, file.slice(MORE.length + 1)) : file
}

export function readSource(file: string): string {
  return readFileSync(join(SRC, fromSrc(file)), "utf8")
}

/** The file that a relative import names. */
export function importedFile(file: string, target: string): string {
  const path = normalize(join(dirname(fromSrc(file)), target))
  if (path.startsWith(MORE_FROM_SRC + sep)) return join(MORE, path.slice(MORE_FROM_SRC.length + 1))
  return path.startsWith(join("..", "src") + sep) ? path.slice(join("..", "src").length + 1) : path
}
