import { describe, expect, test } from "vitest"
import type { Effect, Part } from "../../src/core/conversation.ts"
import { decisionsInMessage } from "../../src/learn/decisions/decided.ts"
import { decisionsIn, decisionsInCommits, mayBeDecisionRecord } from "../../src/learn/decisions/decisions.ts"
import { subjectOf } from "../../src/learn/decisions/subject.ts"
import { findReversals } from "../../src/learn/decisions/supersede.ts"
import type { StoredMessage } from "../../src/store/history/store.ts"

const ROW = { ref: { source: "claude_code" as const, id: "one" }, kind: "person" as const, project: "/code/shop" }

function message(number: number, parts: Part[], more: Partial<StoredMessage> = {}): StoredMessage {
  const role = parts[0]?.origin === "person" ? "user" : "assistant"
  return {
    number,
    role,
    at: number * 1000,
    parts,
    effects: [],
    abandoned: false,
    superseded: false,
    copied: false,
    ...more,
  }
}

const typed = (number: number, text: string, more: Partial<StoredMessage> = {}) =>
  message(number, [{ type: "text", text, origin: "person" }], { role: "user", ...more })
const edited = (number: number, ...paths: string[]) =>
  message(number, [], { effects: paths.map((path): Effect => ({ type: "file", path, action: "edited" })) })
const quotes = (messages: StoredMessage[], row: Parameters<typeof decisionsIn>[0] = ROW) =>
  decisionsIn(row, messages).map(({ kind, quote, origin }) => [kind, quote, origin])

describe("a person's sentence", () => {
  test.each([
    "We decided to keep prices as integers of cents.",
    "let's use pnpm and not yarn for the workspace",
    "I want the export to be a background job instead",
    "we should always store timestamps in UTC",
    "The invoice page should never show the tax of other countries",
    "No, keep the parser in one file",
    "Don't retry payments, the provider charges twice",
    "I don't want tokens of a person's own account in CI",
    "let's completely remove the legacy importer",
  ])("decides: %s", (sentence) => expect(decisionsInMessage(sentence)).toEqual([{ quote: sentence, origin: "person" }]))

  test.each([
    ["a question", "should we keep prices as integers of cents?"],
    ["a question without its mark", "can we use pnpm instead of yarn for the workspace"],
    ["a task", "let's fix the failing invoice test"],
    ["work on the branch", "we need to rebase and push the invoice branch"],
    ["what happens", "we need this but I get an error when the invoice is exported"],
    ["assent that names nothing", "yes, we should keep it"],
    ["a contrast alone", "the basket shows the gross price instead of the net price"],
    ["a command of the agent", "/always-store timestamps in UTC"],
    ["a shell command", "!git log we should always store timestamps in UTC"],
    [
      "words that the agent's own hook put there",
      "Operation stopped by hook: we should always store timestamps in UTC",
    ],
  ])("finds no decision in %s", (_, sentence) => expect(decisionsInMessage(sentence)).toEqual([]))

  test("counts as the person's own only if it was typed", () => {
    expect(decisionsInMessage("look:\n```\nwe should always store timestamps in UTC\n```\nthanks")).toEqual([])
    expect(decisionsInMessage("> we should always store timestamps in UTC")).toEqual([])
    const review =
      "Medium Severity\n\nThe flag should always retry the invoice. Consider adding a limit.\n\nI want no limit here, the queue has one"
    expect(said(review)).toEqual(["I want no limit here, the queue has one"])
    expect(said(`we should always store timestamps in UTC\n${"and more of what was pasted\n".repeat(200)}`)).toEqual([])
    expect(said('// we should always store timestamps in UTC\n"rule": "we should always use UTC timestamps",')).toEqual(
      [],
    )
  })

  test("includes the lines that it introduces, unless these are clear on their own", () => {
    expect(said("I want the invoice command to print like:\n3 invoices\n1 overdue")).toEqual([
      "I want the invoice command to print like:\n3 invoices\n1 overdue",
    ])
    expect(
      said("I want two things for the invoice page:\n- keep the totals row\n- remove the footer entirely"),
    ).toEqual([
      "I want two things for the invoice page: keep the totals row",
      "I want two things for the invoice page: remove the footer entirely",
    ])
  })
})

const said = (text: string, agentsText?: string) => decisionsInMessage(text, agentsText).map(({ quote }) => quote)

describe("a sentence that is not clear on its own", () => {
  const options =
    "Two ways to go on:\n\n**Option A**: invoices stay in the request\n- **Option B**: invoices go into a queue\n\nWhich one?"

  test("is quoted with the option that it names, in the agent's words", () => {
    expect(decisionsInMessage("I like option B, with the queue in front", options)).toEqual([
      { quote: "Option B: invoices go into a queue → I like option B, with the queue in front", origin: "agent" },
    ])
    expect(decisionsInMessage("I like Option C", options)).toEqual([])
    expect(decisionsInMessage("I like Option B")).toEqual([])
  })

  test("is quoted with the question that it answers, and with the subject of that question", () => {
    expect(said("yeah let's do length only", "Should short lines be filtered by length or by content?")).toEqual([
      "Should short lines be filtered by length or by content? → yeah let's do length only",
    ])
    expect(
      said("yeah let's do length only", "I'd suggest a filter by length for short lines. Want me to do that?"),
    ).toEqual(["I'd suggest a filter by length for short lines. Want me to do that? → yeah let's do length only"])
    expect(said("This shouldn't be a thing.", "Done. Want me to go on?")).toEqual([])
  })

  test("is quoted with the sentence before it, and both only once", () => {
    expect(said("The invoice page lists drafts too. It should only show what was sent.")).toEqual([
      "The invoice page lists drafts too. It should only show what was sent.",
    ])
    expect(said("The invoice page should never list drafts. It should only show what was sent.")).toEqual([
      "The invoice page should never list drafts. It should only show what was sent.",
    ])
  })

  test("is quoted with what introduces its list, but only in that list", () => {
    const list =
      "There are two problems with the invoice page:\n- the totals row is gone\n- It should only show what was sent."
    const item = "There are two problems with the invoice page: It should only show what was sent."
    expect(said(list)).toEqual([item])
    expect(said(`${list}\n\nThanks for the export.\n\nIt should only contain paid invoices.`)).toEqual([item])
  })

  test("is quoted with the decision that it withdraws, if it withdraws one", () => {
    const agent = message(2, [{ type: "text", text: "Done.", origin: "agent" }], { role: "assistant" })
    const found = decisionsIn(ROW, [
      typed(1, "we should always store timestamps in UTC"),
      agent,
      typed(3, "let's go back"),
    ])
    expect(found.map(({ quote }) => quote)).toEqual([
      "we should always store timestamps in UTC",
      "we should always store timestamps in UTC → let's go back",
    ])
    expect([...findReversals(found.map((one) => ({ ...one, conversation: "one" }))).keys()]).toEqual([found[0]!.key])
  })
})

describe("a conversation", () => {
  test("if a decision is repeated after another one, the newest statement counts, with all its files", () => {
    const [on, off] = ["telemetry should be enabled by default", "telemetry should be disabled by default"]
    const messages = [
      typed(1, on),
      edited(2, "/code/shop/src/send.ts"),
      typed(3, off),
      typed(4, on),
      edited(5, "/code/shop/src/ask.ts"),
      typed(6, on),
    ]
    const found = decisionsIn(ROW, messages)
    expect(found.map(({ quote, number, files }) => [quote, number, files])).toEqual([
      [off, 3, []],
      [on, 4, ["src/ask.ts", "src/send.ts"]],
    ])
    const [offKey, onKey] = found.map(({ key }) => key)
    expect(findReversals(found.map((one) => ({ ...one, conversation: "one" })))).toEqual(new Map([[offKey, onKey]]))
  })

  test("contains each decision once, with its place and its consequences", () => {
    const said = "we should always store timestamps in UTC, see src/time.ts and `toUtc()`"
    const found = decisionsIn(ROW, [
      typed(1, said),
      edited(2, "/code/shop/src/clock.ts", "/elsewhere/x.ts"),
      typed(3, said),
      edited(4, "/code/shop/src/late.ts"),
    ])
    expect(found).toEqual([
      {
        key: expect.stringMatching(/^[0-9a-f]{16}$/),
        kind: "said",
        quote: said,
        number: 1,
        at: 1000,
        files: ["src/time.ts", "src/clock.ts"],
        symbols: ["toUtc"],
        subject: expect.arrayContaining(["timestamp", "utc"]),
        origin: "person",
      },
    ])
    expect(found[0]!.key).toBe(decisionsIn(ROW, [typed(1, said)])[0]!.key)
  })

  test("ignores messages that were abandoned, copied, rewritten, injected or written to a subagent", () => {
    const said = "we should always store timestamps in UTC"
    for (const flag of ["abandoned", "superseded", "copied"])
      expect(quotes([typed(1, said, { [flag]: true })])).toEqual([])
    for (const origin of ["injected", "agent", "local_tool", "web"] as const)
      expect(quotes([message(1, [{ type: "text", text: said, origin }], { role: "user" })])).toEqual([])
    for (const kind of ["subagent", "automation"] as const)
      expect(quotes([typed(1, said)], { ...ROW, kind })).toEqual([])
  })

  const plan =
    "# Move invoices to a queue\n\n## Context\nThey time out.\n\n## Changes\n- Edit `src/invoice.ts` and keep the old one."
  const asked = (number: number, tool: string, input: unknown) =>
    message(number, [{ type: "tool_call", text: JSON.stringify(input), origin: "agent", tool, call_id: `c${number}` }])
  const told = (number: number, tool: string, text: string, of: number, is_error = false) =>
    message(number, [{ type: "tool_result", text, origin: "local_tool", tool, call_id: `c${of}`, is_error }], {
      role: "user",
    })

  test("includes an approved plan, and not a refused one", () => {
    const call = asked(1, "ExitPlanMode", { plan })
    const yes = told(2, "ExitPlanMode", "User has approved your plan. You can now start coding.", 1)
    expect(quotes([call, yes])).toEqual([
      ["plan", "Move invoices to a queue\nEdit `src/invoice.ts` and keep the old one.", "agent"],
    ])
    const shown = told(2, "ExitPlanMode", `User has approved your plan.\n\n## Approved Plan:\n${plan}`, 1)
    expect(quotes([shown])).toEqual([
      ["plan", "Move invoices to a queue\nEdit `src/invoice.ts` and keep the old one.", "agent"],
    ])
    expect(
      quotes([call, told(2, "ExitPlanMode", "The user has not approved it: the tool use was rejected", 1, true)]),
    ).toEqual([])
    expect(quotes([call])).toEqual([])
    const anew = message(1, [{ type: "text", text: `Implement the following plan:\n\n${plan}`, origin: "agent" }], {
      role: "user",
    })
    expect(quotes([anew])).toEqual([
      ["plan", "Move invoices to a queue\nEdit `src/invoice.ts` and keep the old one.", "agent"],
    ])
    expect(decisionsIn(ROW, [anew])[0]).toMatchObject({ files: ["src/invoice.ts"] })
    expect(quotes([{ ...anew, role: "assistant" }])).toEqual([])
    const bare = `Implement the following plan:\n\n# Move invoices to a queue\n\n## Files\n\`\`\`\nsrc/invoice.ts\n\`\`\``
    expect(quotes([message(1, [{ type: "text", text: bare, origin: "agent" }], { role: "user" })])).toEqual([])
  })

  test("includes answers: chosen options are the agent's words, typed ones the person's if they are clear on their own", () => {
    const questions = [
      { question: 'Which queue do you want, "fast" or safe?', options: [{ label: "Redis" }, { label: "Postgres" }] },
      { question: "Where should totals live?", options: [{ label: "In the row" }] },
      { question: "Ready to push the branch?", options: [{ label: "Yes" }] },
      { question: "How should failures look?", options: [{ label: "A banner" }] },
    ]
    const answer = told(
      2,
      "AskUserQuestion",
      'User has answered your questions: "Which queue do you want, "fast" or safe?"="Postgres", "Where should totals live?"="in a view, so that old rows stay", "Ready to push the branch?"="Yes", "How should failures look?"="what do others do?". You can now continue with the user\'s answers in mind.',
      1,
    )
    expect(quotes([asked(1, "AskUserQuestion", { questions }), answer])).toEqual([
      ["answer", 'Which queue do you want, "fast" or safe? → Postgres', "agent"],
      ["answer", "Where should totals live? → in a view, so that old rows stay", "agent"],
    ])
    const typedAnswer = told(
      2,
      "AskUserQuestion",
      'User has answered your questions: "Where should totals live?"="totals should live in a view of the invoices table". Read the answers carefully and follow them.',
      1,
    )
    expect(quotes([asked(1, "AskUserQuestion", { questions }), typedAnswer])).toEqual([
      ["answer", "totals should live in a view of the invoices table", "person"],
    ])
    const refused = { ...answer, parts: answer.parts.map((part) => ({ ...part, is_error: true }) as Part) }
    expect(quotes([refused])).toEqual([])
  })

  test("includes the answers before the person refused to answer more", () => {
    const text =
      'The user wants to clarify these questions.\n\n- "Which queue?"\n  Answer: Postgres\n- "Which cache?"\n  (No answer provided)'
    expect(quotes([typed(1, text)])).toEqual([["answer", "Which queue? → Postgres", "agent"]])
  })

  test("includes breaking commits and reverts", () => {
    const commit = (subject: string): Effect => ({ type: "commit", hash: "abc1234", subject })
    const made = message(1, [], {
      effects: [commit("feat(api)!: drop v1"), commit('Revert "feat: queue"'), commit("fix: reverting totals")],
    })
    expect(quotes([made])).toEqual([
      ["breaking", "feat(api)!: drop v1", "agent"],
      ["revert", 'Revert "feat: queue"', "agent"],
    ])
  })
})

test("commits outside of conversations say what breaks and why something was reverted", () => {
  const commit = { hash: "abc1234def", files: ["src/api.ts"], at: 5 }
  const found = decisionsInCommits([
    { ...commit, subject: "api: totals are cents", body: "More.\n\nBREAKING CHANGE: `totalOf` returns an integer.\n" },
    { ...commit, subject: 'Revert "feat: queue"', body: "This reverts commit 0000.\n\nIt lost invoices." },
    { ...commit, subject: "docs: revert is explained", body: "" },
  ])
  expect(found).toMatchObject([
    {
      kind: "breaking",
      quote: "api: totals are cents\n`totalOf` returns an integer.",
      hash: "abc1234def",
      symbols: ["totalOf"],
    },
    { kind: "revert", quote: 'Revert "feat: queue"\nIt lost invoices.', files: ["src/api.ts"], at: 5 },
  ])
})

describe("a decision record", () => {
  const section = (number: number, headings: string[], text: string): StoredMessage =>
    message(
      number,
      [
        {
          type: "text",
          text,
          origin: "document",
          section: { name: headings.at(-1)!, anchor: "a", headings, first_line: 1, last_line: 2 },
        },
      ],
      { role: "document" },
    )
  const record = (status: string) => [
    section(1, ["4. Use a queue"], `# 4. Use a queue\n\n${status}`),
    section(2, ["4. Use a queue", "Context"], "## Context\n\nInvoices time out."),
    section(
      3,
      ["4. Use a queue", "Decision"],
      "## Decision\n\nWe put invoices into a queue\nin Postgres.\n\nMore of it.",
    ),
  ]
  const row = (id: string) => ({ ...ROW, kind: "document" as const, ref: { source: "docs" as const, id } })

  test("is recognised by its status or its folder, and only while it is in force", () => {
    const told = [["adr", "4. Use a queue\nWe put invoices into a queue in Postgres.", "document"]]
    expect(quotes(record("Status: Accepted"), row("shop/notes/queue.md"))).toEqual(told)
    expect(quotes(record("Date: today"), row("shop/docs/adr/0004-queue.md"))).toEqual(told)
    expect(quotes(record("Date: today"), row("shop/notes/queue.md"))).toEqual([])
    for (const status of ["Status: Proposed", "**Status:** Rejected"])
      expect(quotes(record(status), row("shop/docs/adr/0004-queue.md"))).toEqual([])
    expect(
      decisionsIn({ ...row("npm/docs/adr/1.md"), project: undefined } as never, record("Status: Accepted")),
    ).toEqual([])
  })

  test("is searched for only in likely places", () => {
    for (const path of ["c/docs/adr/a.md", "c/0004-queue.md", "c/architecture/x.md", "c/decisions.md"])
      expect(mayBeDecisionRecord(path)).toBe(true)
    for (const path of ["c/README.md", "c/guide/quadrant.md"]) expect(mayBeDecisionRecord(path)).toBe(false)
  })
})

describe("a later decision", () => {
  const made = (...said: (string | [conversation: string, quote: string])[]) =>
    said.map((one, i) => {
      const [conversation, quote] = typeof one === "string" ? ["one", one] : one
      return { key: `k${i}`, kind: "said", quote, number: i + 1, subject: subjectOf(quote), conversation }
    })
  const reversed = (...said: Parameters<typeof made>) => Object.fromEntries(findReversals(made(...said)))

  test.each([
    ["with another value", "the session folders start at number 1", "the session folders start at number 0"],
    [
      "against what was chosen",
      "let's use yarn for the workspace packages",
      "we use pnpm for workspace packages instead of yarn",
    ],
    ["to the opposite", "telemetry should be enabled by default", "make telemetry disabled by default"],
    ["from always to never", "we should always sort the wombat table by name", "never sort the wombat table by name"],
    ["from there", "Number the invoice folders 1-based", "Change the invoice folders from 1-based to 0-based"],
    [
      "by taking it out",
      "show the overdue banner on the invoice page",
      "let's remove the overdue banner from the invoice page",
    ],
  ])("reverses an earlier one %s", (_, earlier, later) => {
    expect(reversed(["a", earlier], ["a", later])).toEqual({ k0: "k1" })
  })

  test("reverses a decision of another conversation, the newest that it refers to", () => {
    expect(
      reversed(["a", "telemetry should be enabled by default"], ["b", "make telemetry disabled by default"]),
    ).toEqual({
      k0: "k1",
    })
    expect(reversed("let's use yarn for workspaces", "prices are integers of cents", "let's go back")).toEqual({
      k1: "k2",
    })
    expect(reversed(["a", "prices are integers of cents"], ["b", "let's go back"])).toEqual({})
  })

  test.each([
    ["says the same", "telemetry should be enabled by default", "telemetry should be enabled by default"],
    ["is about something else", "telemetry should be enabled by default", "the sidebar should be disabled on phones"],
    [
      "removes something else",
      "show the overdue banner on the invoice page",
      "let's remove the search box from the invoice footer",
    ],
    [
      "shares a word",
      "show the overdue banner on the invoice page",
      "let's remove the cookie banner code from the checkout",
    ],
    [
      "goes further the same way",
      "let's remove yarn from the workspace",
      "we drop yarn from the workspace docs, not only CI",
    ],
  ])("reverses no earlier decision if it %s", (_, earlier, later) =>
    expect(reversed(["a", earlier], ["b", later])).toEqual({}),
  )
})

describe("an agent's summary of what was settled", () => {
  const answered = (number: number, text: string) => message(number, [{ type: "text", text, origin: "agent" }])
  const RULE = "Retry 429 too. Four attempts, and cap the backoff at 60 seconds."
  const RECAP = "Settled: the client retries 5xx and 429 only, at most four attempts."

  test.each([
    ["after the person said how it should be", [typed(1, RULE), answered(2, `Understood. ${RECAP}`)], 1],
    ["that the person accepted", [typed(1, RULE), answered(2, RECAP), typed(3, "Right, ship it.")], 1],
    ["that the person rejected", [typed(1, RULE), answered(2, RECAP), typed(3, "No, 408 as well.")], 0],
    ["of the agent's answer to a question", [typed(1, "Which errors should be retried?"), answered(2, RECAP)], 0],
    ["that nobody had asked for", [answered(1, RECAP)], 0],
    ["of nothing", [typed(1, RULE), answered(2, "It is settled now, the tests pass.")], 0],
  ])("%s", (_, messages, count) => {
    const found = quotes(messages).filter(([, , origin]) => origin === "agent")
    expect(found).toEqual(count === 1 ? [["said", RECAP, "agent"]] : [])
  })
})
