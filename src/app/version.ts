import { createRequire } from "node:module"

declare const DEX_VERSION: string | undefined

/** The version of dex. Inserted by the build; in development, read from package.json. */
export const VERSION: string =
  typeof DEX_VERSION === "string"
    ? DEX_VERSION
    : (createRequire(import.meta.url)("../../package.json") as { version: string }).version
