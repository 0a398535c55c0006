import { describe, expect, test } from "vitest"
import { connectOnce } from "../mcp/client.ts"
import { claudeSession } from "../support/home.ts"
import { syncedOnce } from "../support/synced.ts"
import { warmDex as dex } from "../support/warm.ts"

// Bug reports as people write them: most of their words describe the symptom, and no message repeats them.

type Report = { id: string; decided: string; agreed: string; report: string }

const REPORTS: Report[] = [
  {
    id: "aaaaaaa1-0000-4000-8000-000000000000",
    decided:
      "What should redeem() do if the voucher is worth more than the basket? Finance never wants money wired back.",
    agreed: "Then redeem() keeps the rest on the voucher, and checkout says so.",
    report:
      "Support forwarded three angry emails this morning. A customer bought a lamp worth thirty euros, typed a voucher worth fifty at " +
      "checkout, and afterwards the receipt page displayed a negative total. Finance noticed twenty euros wired back through the bank " +
      "overnight. Please make redeem() behave correctly whenever the voucher exceeds the basket price, and add tests covering it.",
  },
  {
    id: "aaaaaaa2-0000-4000-8000-000000000000",
    decided:
      "Trains that cross midnight belong into the bucket of the day on which they left the depot. Say so in the query.",
    agreed: "Done: the aggregation uses the day of departure.",
    report:
      "The weekly punctuality dashboard looks wrong since Monday. Operators in the control room compared printed sheets against our chart " +
      "and found several trains missing from Sunday while Monday contains duplicates. The affected rows all cross midnight, left from the " +
      "northern depot, and carry passengers with reservations. Figure out which bucket they belong into and repair the aggregation query.",
  },
  {
    id: "aaaaaaa3-0000-4000-8000-000000000000",
    decided: "A page that the editors retired keeps its slug for ever, since printed links must go on working.",
    agreed: "The slug helper now adds a suffix to a new dish of the same name.",
    report:
      "Visitors who follow bookmarks from older newsletters land on the wrong dish. Somebody published pancakes again last Thursday, after " +
      "the earlier page had been retired by the editors during spring cleaning, and search engines still list the previous address. The " +
      "slug should apparently differ, yet both pages share it. Correct the helper so that links printed elsewhere continue working.",
  },
]

const ABOUT = [
  "parsing dates",
  "a flaky build",
  "colours of the chart",
  "the login form",
  "renaming folders",
  "caching",
  "fonts",
  "email",
]

const home = syncedOnce((dir) => {
  for (const [i, { id, decided, agreed }] of REPORTS.entries())
    claudeSession(dir, { id, start: `2026-09-0${i + 1}T10:00:00Z`, turns: [{ user: decided }, { assistant: agreed }] })
  for (let i = 0; i < 48; i++) {
    const turns = [
      { user: `Work on ${ABOUT[i % ABOUT.length]}, part ${i}: add the tests and make the page correct.` },
      {
        assistant: `Part ${i} is done, and the price of it is small. I compared it with last week and found it working.`,
      },
    ]
    claudeSession(dir, { id: `bbbbbb${10 + i}-0000-4000-8000-000000000000`, start: "2026-08-01T10:00:00Z", turns })
  }
})

const NOWHERE =
  "Gardeners complain that tulip bulbs delivered in October rot within a fortnight although the cellar thermometer reads nine degrees and " +
  "humidity remains moderate. The wholesaler suspects fungus, the carrier blames condensation under plastic wrapping, and nobody kept " +
  "samples. Establish which shipments suffered, draft a letter to the insurer, and propose packaging made from breathable jute instead."

describe("a question of forty words or more", () => {
  const client = connectOnce(home)

  const inTerminal = async (...args: string[]): Promise<{ id: string }[]> =>
    JSON.parse((await dex(home, ["search", ...args, "--json"])).stdout).results
  const overMcp = async (query: string) =>
    (await client().call("dex_search", { query })).structuredContent!.results as { id: string }[]

  test.each(REPORTS)("finds the conversation that shares some of its rare words: $decided", async ({ id, report }) => {
    expect((await inTerminal(report))[0]?.id).toBe(`claude_code:${id}`)
    expect((await overMcp(report))[0]?.id).toBe(`claude_code:${id}`)
  })

  test("finds single messages too", async () => {
    for (const { id, report } of REPORTS)
      expect((await inTerminal(report, "--by", "message"))[0]?.id).toBe(`claude_code:${id}`)
  })

  test("finds nothing if its rare words are nowhere", async () => {
    expect(await inTerminal(NOWHERE)).toEqual([])
    expect(await overMcp(NOWHERE)).toEqual([])
  })
})
