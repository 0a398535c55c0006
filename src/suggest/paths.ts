/** The path below the project with forward slashes, or undefined when it is elsewhere. */
export function pathBelow(project: string, path: string): string | undefined {
  const slashed = path.replaceAll("\\", "/")
  const base = project.replaceAll("\\", "/").replace(/\/$/, "")
  if (slashed.startsWith(`${base}/`)) return slashed.slice(base.length + 1)
  if (slashed.startsWith("/") || slashed.startsWith("~") || /^[A-Za-z]:/.test(slashed)) return undefined
  const plain = slashed.replace(/^(?:\.\/)+/, "")
  return plain === "" || plain.startsWith("../") ? undefined : plain
}
