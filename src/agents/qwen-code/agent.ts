import type { Agent } from "../agent.ts"
import { qwenCodeRoots } from "./roots.ts"

export const qwenCode: Agent = {
  source: "qwen_code",
  name: "Qwen Code",
  aliases: ["qwen"],
  roots: qwenCodeRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).qwenCodeConnector,
  resume: (id) => ["qwen", "--resume", id],
  open: ["qwen", "-i"],
  printedMarks: ["functionResponse", "toolCallResult"],
  wiring: async () => (await import("./wiring.ts")).qwenCodeWiring,
}
