import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { Effect, Origin, Part } from "../../src/core/conversation.ts"
import { estimateTokens } from "../../src/core/tokens.ts"
import { briefOf } from "../../src/render/brief.ts"
import { type BriefHead, type BriefText, briefText } from "../../src/render/brief-text.ts"
import type { BriefMessage } from "../../src/render/brief-work.ts"

const RUNS = Number(process.env.DEX_RUNS ?? 100)

const numbered = (messages: Omit<BriefMessage, "number">[]): BriefMessage[] =>
  messages.map((message, i) => ({ number: i + 1, ...message }))
const person = (text: string): Omit<BriefMessage, "number"> => ({
  role: "user",
  parts: [{ type: "text", text, origin: "person" }],
})
const agent = (text: string): Omit<BriefMessage, "number"> => ({
  role: "assistant",
  parts: [{ type: "text", text, origin: "agent" }],
})
const did = (...effects: Effect[]): Omit<BriefMessage, "number"> => ({ role: "assistant", parts: [], effects })
const ran = (command: string, exit_status: number, error?: string): Omit<BriefMessage, "number"> =>
  did({ type: "command", command, exit_status, failed: exit_status !== 0, ...(error !== undefined && { error }) })

/** A call and its result. */
function called(tool: string, input: object, result: string, more: { is_error?: boolean; said?: string } = {}) {
  const call_id = `${tool}-${JSON.stringify(input).length}-${result.length}`
  const is_error = more.is_error ?? false
  const parts: Part[] = [{ type: "tool_result", text: result, origin: "local_tool", tool, call_id, is_error }]
  if (more.said !== undefined) parts.push({ type: "text", text: more.said, origin: "person" })
  return [
    {
      role: "assistant" as const,
      parts: [{ type: "tool_call" as const, text: JSON.stringify(input), origin: "agent" as const, tool, call_id }],
    },
    { role: more.said === undefined ? ("tool" as const) : ("user" as const), parts },
  ]
}

const HEAD: BriefHead = {
  id: "claude_code:1f3c",
  agent: "Claude Code",
  title: "Refresh token race",
  project: "/code/api",
  message_count: 12,
  call: (name, words, flags = {}) =>
    ["dex", name, "claude_code:1f3c", ...words, ...Object.entries(flags).flatMap(([k, v]) => [`--${k}`, v])].join(" "),
}

function textOf(messages: BriefMessage[], maxTokens = 2000, head = HEAD): BriefText {
  const { text } = briefText(briefOf(messages), head, maxTokens)
  expect(text).toBeDefined()
  return text!
}

describe("the goal", () => {
  test("is the prompt that states the task and those that redirect it; replies are counted", () => {
    const brief = briefOf(
      numbered([
        person("Make the login faster"),
        agent("Shall I cache the session?"),
        person("yes"),
        person("And measure it with the load script"),
        person("/exit"),
      ]),
    )
    expect(brief.goal.map(({ number, text }) => [number, text])).toEqual([
      [1, "Make the login faster"],
      [4, "And measure it with the load script"],
    ])
    expect(brief.replies).toBe(1)
  })

  test("is never text from a hook, a web page or a tool", () => {
    const by = (origin: Origin): Omit<BriefMessage, "number"> => ({
      role: "user",
      parts: [{ type: "text", text: `EVIL from ${origin}`, origin }],
    })
    const messages = numbered([by("injected"), by("web"), by("local_tool"), person("The task"), agent("Done.")])
    expect(briefOf(messages).goal.map(({ text }) => text)).toEqual(["The task"])
    expect(textOf(messages).brief).not.toContain("EVIL")
  })

  test("of a subagent, or of a plan that was started anew, is an agent's text, and marked as such", () => {
    const plan =
      "Implement the following plan:\n\n# One mutex\n\nIf you need specific details from before exiting, read X"
    const messages = numbered([
      { role: "user", parts: [{ type: "text", text: plan, origin: "agent" }] },
      person("and test it"),
    ])
    expect(briefOf(messages).goal.map(({ by, text }) => [by, text])).toEqual([
      ["agent", "Implement the following plan:\n\n# One mutex"],
      ["person", "and test it"],
    ])
    expect(textOf(messages).brief).toContain("#1 given as the task, written by an agent")
  })

  test("leaves out abandoned branches, and is ordered by place, not by number", () => {
    const messages: BriefMessage[] = [
      { number: 9, ...person("The task") },
      { number: 1, ...person("An older try"), abandoned: true },
      { number: 2, ...person("No longer in the file"), superseded: true },
      { number: 3, ...person("Then the docs") },
    ]
    expect(briefOf(messages).goal.map(({ text }) => text)).toEqual(["The task", "Then the docs"])
  })
})

describe("the state", () => {
  test("is the agent's last words, with the last longer ones if these are few", () => {
    const long = `The mutex is in place. ${"It holds for all callers. ".repeat(6)}`.trim()
    const brief = briefOf(numbered([agent("First."), agent(long), agent("Now the commit."), ran("git push", 0)]))
    expect(brief.last_words.map(({ number }) => number)).toEqual([2, 3])
    expect(briefOf(numbered([agent("x".repeat(200))])).last_words).toHaveLength(1)
    expect(textOf(numbered(called("Bash", { command: "ls" }, "a.ts"))).brief).toContain(
      "(No words of the agent are on record, one tool call.)",
    )
  })

  test.each<[string, Omit<BriefMessage, "number">[]]>([
    [
      "TodoWrite",
      [
        ...called("TodoWrite", { todos: [{ content: "Old", status: "pending" }] }, "ok"),
        ...called(
          "TodoWrite",
          {
            todos: [
              { content: "Lock", status: "completed" },
              { content: "Test", status: "in_progress" },
            ],
          },
          "done",
        ),
      ],
    ],
    [
      "TaskCreate and TaskUpdate",
      [
        ...called("TaskCreate", { subject: "Lock" }, "Task #1 created successfully: Lock"),
        ...called("TaskCreate", { subject: "Test it" }, "Task #2 created successfully: Test it"),
        ...called("TaskUpdate", { taskId: "1", status: "completed" }, "Updated task #1 status"),
        ...called("TaskUpdate", { taskId: "2", status: "in_progress", subject: "Test" }, "Updated task #2"),
      ],
    ],
    [
      "update_plan",
      called(
        "update_plan",
        {
          plan: [
            { step: "Lock", status: "completed" },
            { step: "Test", status: "in_progress" },
          ],
        },
        "ok",
      ),
    ],
    [
      "write_todos",
      called(
        "write_todos",
        {
          todos: [
            { description: "Lock", status: "completed" },
            { description: "Test", status: "in_progress" },
          ],
        },
        "ok",
      ),
    ],
  ])("has the list as %s left it, and what is not ticked off is an open end", (_, messages) => {
    const brief = briefOf(numbered(messages))
    expect(brief.todos.map(({ text, status }) => [text, status])).toEqual([
      ["Lock", "done"],
      ["Test", "active"],
    ])
    expect(brief.open_ends.map(({ kind, text }) => [kind, text])).toEqual([["todo", "Test"]])
  })
})

describe("decisions", () => {
  test("are approved plans, answers and a person's deciding words, in order", () => {
    const question = 'Which "lock" should it be?'
    const brief = briefOf(
      numbered([
        person("Fix the race"),
        ...called("ExitPlanMode", { plan: "# Two mutexes" }, "The user doesn't want to proceed with this tool use.", {
          is_error: true,
          said: "One is enough, rest is fine",
        }),
        ...called("ExitPlanMode", { plan: "# One mutex" }, "User has approved your plan. You can now start coding."),
        ...called(
          "AskUserQuestion",
          { questions: [{ question }, { question: "Where?" }] },
          `User has answered your questions: "${question}"="A "fair" one", "Where?"="In auth.ts". You can now continue.`,
        ),
        person("no, don't touch the tests"),
        person("I don't see it in the log"),
        person("should we use a queue instead?"),
      ]),
    )
    expect(brief.decisions.map(({ number: _, ...decision }) => decision)).toEqual([
      { kind: "refusal", text: "One is enough, rest is fine" },
      { kind: "plan", text: "# One mutex" },
      { kind: "answer", question, text: 'A "fair" one' },
      { kind: "answer", question: "Where?", text: "In auth.ts" },
      { kind: "words", text: "no, don't touch the tests" },
    ])
    expect(brief.goal.map(({ text }) => text)).toEqual([
      "Fix the race",
      "I don't see it in the log",
      "should we use a queue instead?",
    ])
  })
})

describe("the work", () => {
  test("names edited files once, newest first, with the lines of all edits", () => {
    const edit = (path: string, added: number, removed: number): Effect => ({
      type: "file",
      path,
      action: "edited",
      added,
      removed,
    })
    const brief = briefOf(
      numbered([
        did(edit("/code/api/a.ts", 3, 1)),
        did(edit("/code/api/b.ts", 1, 0)),
        did(edit("/code/api/a.ts", 2, 2)),
      ]),
      ["/code/api"],
    )
    expect(brief.edited).toEqual([
      { number: 3, path: "a.ts", added: 5, removed: 3 },
      { number: 2, path: "b.ts", added: 1, removed: 0 },
    ])
  })

  test("says which failure was fixed, and lists the others as open", () => {
    const brief = briefOf(
      numbered([
        ran("cd api && npm run test -- -u", 1, "2 failed"),
        ran("cargo build", 101, "error[E0308]"),
        ran("grep -r nothing .", 1),
        ran("CI=1 npm run test 2>&1", 0),
      ]),
    )
    expect(brief.commands).toEqual([
      { number: 4, command: "CI=1 npm run test 2>&1", outcome: "succeeded", exit_status: 0 },
      { number: 2, command: "cargo build", outcome: "failed", exit_status: 101, error: "error[E0308]" },
    ])
    expect(brief.open_ends).toEqual([{ kind: "command", number: 2, text: "cargo build" }])
    const mended = briefOf(
      numbered([ran("go vet ./a && go test ./a", 1, "FAIL"), ran("go test ./a", 0), ran("go vet ./b", 0)]),
    )
    expect(mended.commands.at(-1)).toMatchObject({ number: 1, later: { number: 3, outcome: "succeeded" } })
    expect(mended.open_ends).toEqual([])
  })

  test("does not take the exit status of a pipe for success", () => {
    const brief = briefOf(numbered([ran("go test ./...", 1, "FAIL"), ran("go test ./... 2>&1 | tail -5", 0)]))
    expect(brief.commands.map(({ outcome, later }) => [outcome, later?.outcome])).toEqual([
      ["unknown", undefined],
      ["failed", "unknown"],
    ])
    expect(textOf(numbered([ran("go test 2>&1 | tail", 0)])).brief).toContain("ended in a pipe, so it may have failed")
  })

  test("treats failures before the last commit as settled", () => {
    const commit = did({ type: "commit", hash: "1a2b3c4d", subject: "auth: one refresh at a time" })
    expect(briefOf(numbered([ran("cargo build", 1), commit])).open_ends).toEqual([])
    expect(briefOf(numbered([commit, ran("cargo build", 1)])).open_ends).toHaveLength(1)
  })
})

describe("open ends", () => {
  const ends = (...messages: Omit<BriefMessage, "number">[]) =>
    briefOf(numbered(messages)).open_ends.map(({ kind, text }) => [kind, text])

  test("are a request and a question without an answer", () => {
    expect(ends(person("Fix it"), agent("Fixed."), person("And the docs"))).toEqual([["request", "And the docs"]])
    expect(ends(person("Fix it"), agent("Fixed. It was the cache.\n\nShall I push it?"))).toEqual([
      ["question", "Shall I push it?"],
    ])
    expect(ends(person("Fix it"), agent("Shall I push it?"), person("yes"), agent("Pushed."))).toEqual([])
  })

  test("are the steps that the last words name, and a call without a result", () => {
    expect(
      ends(agent("Done.\n\n## Next steps\n\n1. Run the migration\n2. Tell ops\n\nThat is all.\n- not this")),
    ).toEqual([
      ["step", "Run the migration"],
      ["step", "Tell ops"],
    ])
    const [call] = called("Bash", { command: "npm run deploy" }, "")
    expect(ends(person("Deploy"), call!)).toEqual([["call", "Bash: npm run deploy"]])
  })
})

const MARK = "ZQX"
const text = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: fc.lorem({ maxCount: 20 }) },
      fc.constantFrom(MARK, `\n# ${MARK}`, `\n\n## Goal\n${MARK}`, `\u2028${MARK}`, `\r${MARK}`, `\u0085${MARK}`),
      fc.constantFrom("\n> ", "```\n", "@/etc/passwd ", "\\@x ", "\x1b[31m", "\u202e", "don't", "instead", "?\n", "🎉"),
      { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 60 }) },
      { weight: 1, arbitrary: fc.lorem({ maxCount: 30 }).map((words) => `${words} `.repeat(20)) },
    ),
    { maxLength: 6 },
  )
  .map((pieces) => pieces.join(" "))

const effect: fc.Arbitrary<Effect> = fc.oneof(
  fc.record({
    type: fc.constant("file" as const),
    path: text,
    action: fc.constantFrom("edited" as const, "read" as const),
  }),
  fc.record({
    type: fc.constant("command" as const),
    command: fc.oneof(text, fc.constantFrom("npm test", `go test ${MARK}`, "make lint | tail")),
    exit_status: fc.constantFrom(0, 1, 127),
    failed: fc.boolean(),
    error: text,
  }),
  fc.record({ type: fc.constant("commit" as const), hash: text, subject: text, branch: text }),
  fc.record({ type: fc.constant("pull_request" as const), url: text }),
)
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({
    type: fc.constant("text" as const),
    text,
    origin: fc.constantFrom<Origin>("person", "agent", "local_tool", "web", "injected"),
  }),
  fc.record({ type: fc.constant("summary" as const), text, origin: fc.constant("agent" as const) }),
  fc.record({
    type: fc.constant("tool_call" as const),
    text: fc.oneof(
      text,
      fc
        .record({ todos: fc.array(fc.record({ content: text, status: fc.constantFrom("pending", "completed") })) })
        .map((input) => JSON.stringify(input)),
      fc.record({ questions: fc.array(fc.record({ question: text })) }).map((input) => JSON.stringify(input)),
      fc.record({ plan: text }).map((input) => JSON.stringify(input)),
    ),
    origin: fc.constant("agent" as const),
    tool: fc.constantFrom("TodoWrite", "AskUserQuestion", "ExitPlanMode", "Bash", `${MARK}\n${MARK}`),
    call_id: fc.constantFrom("1", "2", "3"),
  }),
  fc.record({
    type: fc.constant("tool_result" as const),
    text: fc.oneof(text, fc.constant("User has approved your plan.")),
    origin: fc.constant("local_tool" as const),
    tool: fc.constant("Bash"),
    call_id: fc.constantFrom("1", "2", "3"),
    is_error: fc.boolean(),
  }),
)
const conversation = fc
  .array(
    fc.record({
      role: fc.constantFrom("user" as const, "assistant" as const, "tool" as const),
      parts: fc.array(part, { maxLength: 3 }),
      effects: fc.array(effect, { maxLength: 2 }),
    }),
    { maxLength: 40 },
  )
  .map(numbered)
const headed = fc.record({ title: text, project: text, branch: text }).map((more): BriefHead => ({ ...HEAD, ...more }))

describe("any brief of any conversation", () => {
  test("stays within its budget, or says how much it needs", () => {
    fc.assert(
      fc.property(conversation, headed, fc.integer({ min: 1, max: 6000 }), (messages, head, budget) => {
        const brief = briefOf(messages)
        const told = briefText(brief, head, budget)
        if (told.text === undefined) return void expect(told.needed).toBeGreaterThan(budget)
        expect(told.text.estimated_tokens).toBe(estimateTokens(told.text.brief))
        expect(told.text.estimated_tokens).toBeLessThanOrEqual(budget)
        const kept = told.text.goal.length + (told.text.left_out.goal ?? 0)
        expect(kept).toBe(brief.goal.length)
        expect(told.text.files.length + (told.text.left_out.files ?? 0)).toBe(brief.edited.length + brief.read.length)
        expect(briefText(briefOf(messages), head, budget)).toEqual(told)
      }),
      { numRuns: RUNS, interruptAfterTimeLimit: 30_000 },
    )
  })

  test("marks every quoted line, and contains nothing that controls a terminal or an agent", () => {
    fc.assert(
      fc.property(conversation, headed, (messages, head) => {
        const { brief } = textOf(messages, 4000, head)
        for (const line of brief.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/)) {
          const at = line.indexOf(MARK)
          if (at !== -1) expect(line.slice(0, at)).toMatch(/^(?: {2}|- [^>]* | {2}[^>]* )> /)
        }
        expect(brief).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/)
        expect(brief).not.toMatch(/(?<!\\)@/)
      }),
      { numRuns: RUNS, interruptAfterTimeLimit: 30_000 },
    )
  })
})

test("a long conversation is cut where it matters least, and the brief says what is missing and how to read it", () => {
  const messages = numbered([
    person(`The task: ${"speed up the login ".repeat(60)}`),
    ...Array.from({ length: 40 }, (_, i) =>
      person(`Then look at part ${i} of the system and tell me what you find there`),
    ),
    ...Array.from({ length: 40 }, (_, i) =>
      did({ type: "file", path: `src/${i}.ts`, action: "edited", added: i, removed: 0 }),
    ),
    agent(`All parts are measured. ${"The cache helps most. ".repeat(100)}`),
  ])
  const small = textOf(messages, 800)
  expect(small.goal.at(0)).toMatchObject({ ref: "claude_code:1f3c#1", kind: "task", cut: true })
  expect(small.goal.at(-1)).toMatchObject({ ref: "claude_code:1f3c#41", kind: "request" })
  expect(small.state).toMatchObject([{ ref: "claude_code:1f3c#82", kind: "last_words", cut: true }])
  expect(small.files[0]).toMatchObject({ ref: "claude_code:1f3c#81", path: "src/39.ts", added: 39 })
  expect(small.brief).toMatch(/Left out to stay within 800 tokens: \d+ requests, \d+ files\./)
  expect(small.read_more[0]).toBe("dex read claude_code:1f3c 1,82")
  expect(small.brief).toContain("`dex read claude_code:1f3c 1,82`: what is cut here")
  const large = textOf(messages, 20_000)
  expect(large.left_out).toEqual({})
  expect(large.goal.some(({ cut }) => cut)).toBe(false)
  expect(large.goal).toHaveLength(41)
  expect(large.brief).not.toContain("…")
})
