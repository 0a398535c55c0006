import { readFileSync } from "node:fs"

/** The built style sheet of every page: next to the bundle or, in development, in dist. */
export function pageStyle(): string {
  return readFileSync(new URL("view-style.css", builtFolder()), "utf8")
}

/** The folder with the built files of the pages. */
export function builtFolder(): URL {
  const isDevelopment = import.meta.url.endsWith(".ts")
  return new URL(isDevelopment ? "../../../dist/view/" : "../view/", import.meta.url)
}
