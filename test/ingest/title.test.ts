import { describe, expect, test } from "vitest"
import type { Conversation, Effect, Message, Part } from "../../src/core/conversation.ts"
import { conversationTitle } from "../../src/ingest/title.ts"

let count = 0
const message = (role: Message["role"], part: Part, effects: Effect[] = []): Message => ({
  key: `k${count++}`,
  role,
  parts: [part],
  effects,
})
const typed = (text: string) => message("user", { type: "text", text, origin: "person" })
const answered = (text: string) => message("assistant", { type: "text", text, origin: "agent" })
const planned = (text: string) =>
  message("user", { type: "text", text: `Implement the following plan:\n\n${text}`, origin: "agent" })
const committed = (subject: string) =>
  message("assistant", { type: "text", text: "Done.", origin: "agent" }, [{ type: "commit", hash: "1a2b3c4", subject }])

const titled = (messages: Message[], more: Partial<Conversation> = {}) =>
  conversationTitle({ kind: "person", messages, ...more })?.text

describe("the title of a conversation without one", () => {
  test("is the heading of the plan that it began with, or of the last approved one", () => {
    expect(titled([planned("# Plan: Secrets redaction for writes\n\n## Context"), typed("too slow.")])).toBe(
      "Secrets redaction for writes",
    )
    const call = { type: "tool_call" as const, text: '{"plan":"# Move the parser\\n…"}', origin: "agent" as const }
    const approved = { type: "tool_result" as const, origin: "local_tool" as const, is_error: false }
    const messages = [
      typed("let's discuss the parser folder"),
      message("assistant", { ...call, tool: "ExitPlanMode", call_id: "c1" }),
      message("tool", { ...approved, tool: "ExitPlanMode", call_id: "c1", text: "User has approved your plan." }),
    ]
    expect(titled(messages)).toBe("Move the parser")
    const refused = message("tool", { ...approved, is_error: true, tool: "ExitPlanMode", call_id: "c1", text: "No." })
    expect(titled([...messages.slice(0, 2), refused])).toBe("Let's discuss the parser folder")
  })

  test("is its commit's subject, with the branch if that adds something", () => {
    const messages = [typed("commit this"), committed("Merge branch 'main'"), committed("auth: rotate tokens once")]
    expect(titled(messages)).toBe("auth: rotate tokens once")
    expect(titled(messages, { git_branch: "alice/ent-221-rotate-auth-tokens-once" })).toBe(
      "auth: rotate tokens once · ENT-221 rotate auth tokens once",
    )
    expect(titled(messages, { git_branch: "rotate-auth-tokens" })).toBe("auth: rotate tokens once")
    expect(titled(messages, { git_branch: "main" })).toBe("auth: rotate tokens once")
  })

  test("is the request if the commits are about several subjects", () => {
    const request = typed("Prepare the release of the walrus tool")
    expect(titled([request, committed("auth: rotate tokens once"), committed("auth: test that tokens rotate")])).toBe(
      "auth: rotate tokens once",
    )
    const several = [committed("auth: rotate tokens once"), committed("docs: describe the sidebar")]
    expect(titled([request, ...several])).toBe("Prepare the release of the walrus tool")
    for (const chore of ["commit this", "Group the walrus changes into meaningful commits"])
      expect(titled([typed(chore), ...several])).toBe("auth: rotate tokens once")
  })

  test("leaves out what was pasted from a terminal or a licence, and a command before the request", () => {
    const pasted = "• by using this software you agree with its EULA\n• running the release\n❯ walrus enable\n✓ Enabled"
    expect(titled([typed(`${pasted}\nThe walrus tool prints too little`)])).toBe("The walrus tool prints too little")
    expect(titled([typed("/workflows:plan Right now the walrus sleeps")])).toBe("Right now the walrus sleeps")
    expect(titled([typed("Add a standard MIT license to the walrus tool")])).toBe(
      "Add a standard MIT license to the walrus tool",
    )
    expect(titled([typed("❯ walrus enable\n✓ Quagga enabled")])).toBe("❯ walrus enable ✓ Quagga enabled")
  })

  test("begins with a capital if it is prose", () => {
    expect(titled([typed("why does the walrus sleep?")])).toBe("Why does the walrus sleep?")
    expect(titled([typed("écris un titre pour le morse")])).toBe("Écris un titre pour le morse")
    for (const name of [
      "npm fails on walrus",
      "walrus_lock is held by quagga",
      "parseQuery drops walrus",
      "a/b.ts has a walrus",
    ])
      expect(titled([typed(name)])).toBe(name)
    expect(titled([typed("look"), committed("walrus sleeps less")])).toBe("walrus sleeps less")
  })

  test("is the first informative prompt", () => {
    expect(titled([typed("hello"), typed("yes"), typed("Why is the sidebar flickering?")])).toBe(
      "Why is the sidebar flickering?",
    )
    expect(titled([typed("/review 158"), typed("1"), typed("ok. Now move the sidebar's cache\nto disk")])).toBe(
      "Now move the sidebar's cache to disk",
    )
    expect(titled([typed("Look at https://example.org/pull/12 and /a/b/c.ts"), typed("The cursor blinks twice")])).toBe(
      "The cursor blinks twice",
    )
  })

  test("begins with its branch if no prompt is informative", () => {
    expect(
      titled([typed("can you address the comment on the PR?")], { git_branch: "20260209-simplifyOnboarding" }),
    ).toBe("Simplify Onboarding: can you address the comment on the PR?")
  })

  test("is never a bare command, a number, a yes or a greeting if there is anything else", () => {
    for (const empty of ["/clear", "181", "yes and yes", "hello", "commit this", "too", "ok, push"])
      expect(titled([typed(empty), answered("Sure. The parser now reads nested quotes.")])).toBe(
        "The parser now reads nested quotes.",
      )
    expect(titled([typed("hello")])).toBe("Hello")
    expect(titled([])).toBeUndefined()
  })

  test("ignores abandoned messages, and is cut", () => {
    expect(titled([{ ...typed("Rename the walrus module"), abandoned: true }, typed("Paint the quagga stripes")])).toBe(
      "Paint the quagga stripes",
    )
    expect(titled([typed("quagga stripes ".repeat(50))])).toHaveLength(120)
    const long = titled([typed("quagga stripes ".repeat(50))], { git_branch: "walrus-teeth" })!
    expect(long.length).toBeLessThanOrEqual(120)
    expect(long).toMatch(/… · walrus teeth$/)
  })

  test("is the task, for a subagent", () => {
    const task = message("user", { type: "text", text: "Find files", origin: "agent" })
    expect(titled([task, committed("auth: rotate tokens once")], { kind: "subagent", git_branch: "x-y-z" })).toBe(
      "Find files",
    )
  })
})
