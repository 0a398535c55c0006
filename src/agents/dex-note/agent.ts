import type { Agent } from "../agent.ts"
import { dexNoteRoots } from "./roots.ts"

/** What was given to dex to keep. */
export const dexNote: Agent = {
  source: "dex_note",
  name: "dex note",
  roots: dexNoteRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).dexNoteConnector,
}
