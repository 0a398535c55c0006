import { expect, test } from "vitest"
import { whyFacts } from "../../src/answers/why-facts.ts"
import type { Effect, Part } from "../../src/core/conversation.ts"
import type { ConversationRow, StoredMessage } from "../../src/store/history/store.ts"

const ROW = {
  ref: { source: "claude_code", id: "one" },
  kind: "person",
  project: "/code/shop",
  ended_at: 99_000,
} as ConversationRow

function message(number: number, parts: Part[], effects: Effect[] = []): StoredMessage {
  const role = parts[0]?.origin === "person" ? "user" : "assistant"
  return { number, role, at: number * 1000, parts, effects, abandoned: false, superseded: false, copied: false }
}
const typed = (number: number, text: string) => message(number, [{ type: "text", text, origin: "person" }])
const edit = (number: number) =>
  message(number, [], [{ type: "file", path: "/code/shop/src/queue.ts", action: "edited", added: 3, removed: 0 }])
const tests = (number: number, failed: boolean) =>
  message(number, [], [{ type: "command", command: "npm test", failed, ...(failed && { error: "1 failed" }) }])
const commit = (number: number, subject: string) =>
  message(number, [], [{ type: "commit", hash: `abc000${number}`, subject }])

const MESSAGES = [
  typed(1, "Write the basket page of the shop"),
  typed(2, "let's use pnpm and not yarn for the workspace"),
  edit(3),
  commit(4, "basket: first page"),
  typed(5, "Orders are lost when the queue is restarted, please find out why and repair that"),
  typed(6, "we should always store the queue in Postgres"),
  edit(7),
  tests(8, true),
  edit(9),
  tests(10, false),
  typed(11, "yes"),
  commit(12, "queue: survives a restart"),
  typed(13, "we should never show the tax of other countries"),
  edit(14),
  message(15, [{ type: "text", text: "Done.\n\nNext steps:\n- Drop the old table", origin: "agent" }]),
]

test("a change is explained by what was asked, decided and tested between the previous commit and its own", () => {
  expect(whyFacts({ row: ROW, messages: MESSAGES, edits: [7, 9], committed: 12 })).toEqual({
    asked: [
      { ref: "claude_code:one#1", text: "Write the basket page of the shop" },
      {
        ref: "claude_code:one#5",
        text: "Orders are lost when the queue is restarted, please find out why and repair that",
      },
    ],
    decided: [{ ref: "claude_code:one#6", kind: "said", text: "we should always store the queue in Postgres" }],
    rejected: [],
    done: [],
    tests: [{ ref: "claude_code:one#10", command: "npm test", outcome: "passed", failed_before: 1 }],
    open: [{ ref: "claude_code:one#15", kind: "step", text: "Drop the old table" }],
  })
})

test("what was done is the agent's last report before the person's next message, without announcements and next steps", () => {
  const says = (number: number, text: string) => message(number, [{ type: "text", text, origin: "agent" }])
  const messages = [
    typed(1, "Orders are lost when the queue is restarted, please repair that"),
    says(2, "The queue was never written to the disk."),
    edit(3),
    says(4, "Let me run the tests of the queue again."),
    commit(5, "queue: survives a restart"),
    says(
      6,
      "Now all is done.\n\nThe queue is written to Postgres before an order is confirmed.\n\n## Next steps\n- Drop the old table soon",
    ),
    typed(7, "Thanks, and now write the changelog of the release"),
    says(8, "The changelog has the queue in it."),
  ]
  const doneWith = (some: StoredMessage[]) => whyFacts({ row: ROW, messages: some, edits: [3], committed: 5 }).done
  expect(doneWith(messages)).toEqual([
    { ref: "claude_code:one#6", text: "The queue is written to Postgres before an order is confirmed." },
  ])
  expect(doneWith(messages.filter(({ number }) => number !== 6))).toEqual([])
  const left = says(6, "Committed. What is left: the old table is still there.")
  expect(doneWith(messages.map((one) => (one.number === 6 ? left : one)))).toEqual([])
})

test("an edit without a later commit is explained up to the end", () => {
  const { asked, decided, tests } = whyFacts({ row: ROW, messages: MESSAGES, edits: [14] })
  expect(decided.map(({ ref }) => ref)).toEqual(["claude_code:one#13"])
  expect(asked[0]!.ref).toBe("claude_code:one#1")
  expect(tests).toEqual([])
})

test("an abandoned branch explains nothing", () => {
  const left = MESSAGES.map((one) => (one.number === 6 ? { ...one, abandoned: true } : one))
  expect(whyFacts({ row: ROW, messages: left, edits: [7], committed: 12 }).decided).toEqual([])
})
