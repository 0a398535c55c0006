import type { Agent } from "../agent.ts"

/** What was asked of dex itself. */
export const dexChat: Agent = {
  source: "dex_chat",
  name: "dex chat",
  connector: async () => (await import("./connector.ts")).dexChatConnector,
}
