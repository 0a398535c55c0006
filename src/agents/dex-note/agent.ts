import type { Agent } from "../agent.ts"

/** What was given to dex to keep. */
export const dexNote: Agent = {
  source: "dex_note",
  name: "dex note",
  connector: async () => (await import("./connector.ts")).dexNoteConnector,
}
