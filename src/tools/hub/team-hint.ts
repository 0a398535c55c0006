import { readHub } from "../../config/hub.ts"
import type { Dex } from "../context.ts"

/** A hint for someone who found nothing here and is logged in to a hub. Never throws. */
export function teamHint(dex: Pick<Dex, "home" | "caller">): string[] {
  try {
    if (readHub(dex.home).token === undefined) return []
    return [`Your team's hub may know more: ${dex.caller === undefined ? "add --team" : 'ask with where: "team"'}.`]
  } catch {
    return [] // The hub's settings cannot be read. `dex hub status` shows why.
  }
}
