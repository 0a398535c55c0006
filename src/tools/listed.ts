import type { Dex } from "./context.ts"

/** The ref of a row in this terminal's last listing. Undefined if `typed` is not a row number, or if there is no such row. */
export function refOfListedRow(dex: Pick<Dex, "lastListing">, typed: string): string | undefined {
  return /^\s*\d{1,4}\s*$/.test(typed) ? dex.lastListing().refs[Number(typed) - 1] : undefined
}
