import { DexError } from "../../src/core/error.ts"
import { serveOrders } from "../../src/subprocess/serve.ts"

// Started by test/subprocess/subprocess.test.ts, as a thread and as a process.

export type EchoOrder =
  | { type: "say"; words: string }
  | { type: "count"; to: number }
  | { type: "wait" }
  | { type: "fail"; code?: string }
  | { type: "die" }

serveOrders<EchoOrder, string, number>(
  async (order, { emit, signal }) => {
    switch (order.type) {
      case "say":
        return order.words
      case "count":
        for (let n = 1; n <= order.to; n++) emit(n)
        return `counted to ${order.to}`
      case "wait":
        emit(0)
        await new Promise((resolve) => signal.addEventListener("abort", resolve))
        return "cancelled"
      case "fail":
        throw order.code === undefined ? new Error("it failed") : new DexError(order.code, "it failed in words")
      case "die":
        process.exit(3)
    }
  },
  { endWithinMs: 60_000 },
)
