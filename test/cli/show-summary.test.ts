import { beforeAll, expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { modelServer } from "../support/model-server.ts"
import { sharedTempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const home = sharedTempDir()
const ID = "11111111-1111-4111-8111-111111111111"
const REF = `claude_code:${ID}`
const PLAN = "# Keep one queue\n\nWe keep a single queue for all jobs."

beforeAll(async () => {
  claudeSession(home, {
    id: ID,
    start: "2026-11-15T09:00:00Z",
    title: "One \u001b[31mqueue",
    turns: [
      { user: "Which queue do the webhook jobs need? Please find out and write it down." },
      {
        tool: {
          name: "ExitPlanMode",
          input: { plan: PLAN },
          output: `User has approved your plan.\n\n## Approved Plan:\n${PLAN}`,
        },
      },
      {
        tool: {
          name: "Edit",
          input: { file_path: "/code/api/src/queue.ts", old_string: "a", new_string: "b" },
          output: "The file /code/api/src/queue.ts has been updated.",
        },
      },
      { tool: { name: "Bash", input: { command: "npm test" }, output: "Exit code 1\nFAIL", error: true } },
      {
        assistant: `All webhook jobs use one queue now. The retry test still fails. ${"It waits for a decision. ".repeat(8)}`,
      },
    ],
  })
  await syncHome(home)
})

const summaryOf = async (...args: string[]) => {
  const { stdout } = await dex(home, ["show", REF, "--summary", "--json", ...args])
  return JSON.parse(stdout).conversations[0]
}

test("a summary has the goal, state, decisions and files as the handover has them, and nothing else", async () => {
  const conversation = await summaryOf()
  const handover = JSON.parse((await dex(home, ["handover", REF, "--json"])).stdout)
  expect(conversation).toMatchObject({ id: REF, messages: [] })
  const { goal, state, decisions, files, ...rest } = conversation.summary
  expect({ goal, state, decisions, files }).toEqual({
    goal: handover.goal,
    state: handover.state,
    decisions: handover.decisions,
    files: handover.files,
  })
  expect(rest).toEqual({ left_out: {} })
  expect([goal.length, state.length, decisions.length, files.length]).toEqual([1, 1, 1, 1])
})

test("it reads as four short sections, up to a message if one is named, and refuses a budget that is too small", async () => {
  const { stdout } = await dex(home, ["show", REF, "--summary"])
  expect(stdout).toMatch(/\nGoal\n {2}#1 +Which queue do the webhook jobs need\?/)
  expect(stdout).toMatch(/\nState\n {2}#\d+ +All webhook jobs use one queue now\./)
  expect(stdout).toMatch(/\nDecisions\n {2}#\d+ +.*Keep one queue/)
  expect(stdout).toMatch(/\nFiles\n {2}#\d+ +src\/queue\.ts \+\d+ -\d+\n/)
  expect(stdout).not.toContain("\u001b")
  const early = JSON.parse((await dex(home, ["show", `${REF}#1`, "--summary", "--json"])).stdout).conversations[0]
  expect(early.summary).toMatchObject({ goal: [{ ref: `${REF}#1` }], state: [], decisions: [], files: [] })
  expect(await dex(home, ["show", REF, "--summary", "--max-tokens", "20"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("tokens are too few"),
  })
})

test("with a model, its words come first, without sentences that the conversation does not support", async () => {
  const server = await modelServer(() => [
    { text: "The webhook jobs use one queue now [1]. The database was replaced by Oracle 19 [1]." },
  ])
  const env = { DEX_LLM_PROVIDER: server.url }
  const { stdout } = await dex(home, ["show", REF, "--summary", "--json"], env)
  const { words, goal } = JSON.parse(stdout).conversations[0].summary
  expect(words).toMatchObject({ sources: [{ n: 1, ref: expect.stringContaining(`${REF}#`) }] })
  expect(words.text).toContain("one queue now")
  expect(words.text).not.toContain("Oracle")
  expect(goal).toHaveLength(1)
  expect(JSON.stringify(server.requests)).toContain("Keep one queue")
})
