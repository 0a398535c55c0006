import { expect, test } from "vitest"
import type { ConversationRow } from "../../src/store/history/store.ts"
import type { Addresses } from "../../src/view/page.ts"
import type { ConversationShape } from "../../src/view/read/shape.ts"
import { factsHtml } from "../../src/view/read/sides.ts"

function costText(cost: number, tokens: number, unpriced: number): string {
  const shape: ConversationShape = {
    ...{ versions: new Map(), prompts: [], marks: [], files: new Map(), commands: [], commitsAndPullRequests: [] },
    ...{ roles: {}, spent: [{ number: 1, cost, tokens }], unpriced },
  }
  const subagents = { all: [], byCall: new Map() }
  const facts = factsHtml({} as ConversationRow, shape, subagents, () => "", {} as Addresses)
  return facts.html
    .replace(/<svg.*?<\/svg>/s, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim()
}

test("only what has a price is at list price", () => {
  expect(costText(1.5, 2_000_000, 0)).toBe("Cost $1.50 2M tokens at list price")
  expect(costText(0, 1_500, 1_500)).toBe("Cost no price known 1.5k tokens")
  expect(costText(0, 1_500, 0)).toBe("Cost $0.00 1.5k tokens at list price")
  expect(costText(1.5, 4_000, 1_000)).toBe("Cost $1.50 3k tokens at list price 1k tokens have no known price.")
})
