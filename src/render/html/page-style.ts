import { readFileSync } from "node:fs"

/** The style of every page, as it was built: beside the bundle or, in development, in dist. */
export function pageStyle(): string {
  return readFileSync(new URL("view-style.css", builtFolder()), "utf8")
}

/** Where the pages' own files are. */
export function builtFolder(): URL {
  const development = import.meta.url.endsWith(".ts")
  return new URL(development ? "../../../dist/view/" : "../view/", import.meta.url)
}
