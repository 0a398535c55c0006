import type { Dex } from "./context.ts"

/** The ref of a row in the last listing of this terminal, where a number is typed that it has. */
export function listedRef(dex: Pick<Dex, "lastListing">, typed: string): string | undefined {
  return /^\s*\d{1,4}\s*$/.test(typed) ? dex.lastListing().refs[Number(typed) - 1] : undefined
}
