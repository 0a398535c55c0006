import type { Client } from "./client.ts"

/** Good calls, bad input, bad tools, failures, and lines that are not messages. */
export function kindsOf(client: Client): (() => Promise<unknown>)[] {
  return [
    () => client.call("dex_search", { query: "token" }),
    () => client.call("dex_get", { ids: ["zzzz"] }),
    () => client.request("tools/call", { name: "dex_none" }),
    () => client.call("dex_search", { limit: "many" }),
    () => client.request("resources/read", { uri: "dex://conversation/zzzz" }),
    () => client.request("prompts/get", { name: "none" }),
    () => client.request("nothing/here"),
    () => client.call("dex_list", {}),
    async () => client.send("{ not json"),
    async () => client.send("[]"),
  ]
}
