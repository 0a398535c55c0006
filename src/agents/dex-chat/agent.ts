import type { Agent } from "../agent.ts"
import { dexChatRoots } from "./roots.ts"

/** What was asked of dex itself. */
export const dexChat: Agent = {
  source: "dex_chat",
  name: "dex chat",
  roots: dexChatRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).dexChatConnector,
}
