import { expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { syncedOnce } from "../support/synced.ts"
import { warmDex as dex } from "../support/warm.ts"

const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"
const ENV = { CLAUDE_CODE_SESSION_ID: AUTH.split(":")[1]! }
const LONG = "claude_code:99999999-9999-4999-8999-999999999999"
const home = syncedOnce((home) => {
  claudeSession(home, {
    id: LONG.split(":")[1]!,
    cwd: "/code/api",
    start: "2026-11-02T00:00:00Z",
    turns: [
      { user: "the log says: ".repeat(200) },
      ...Array.from({ length: 20 }, (_, i) => ({ user: `Question ${i} about the queue` })),
    ],
  })
})
const json = async (args: string[], env = {}) => JSON.parse((await dex(home, [...args, "--json"], env)).stdout)
const error = async (...args: string[]) => {
  const { code, stdout, stderr } = await dex(home, args)
  expect([code, stdout]).toEqual([2, ""])
  return stderr
}
const wordsOf = (line: string) => line.split(" ").slice(1)

test("--lines outlines a conversation, and continues under its own name", async () => {
  const all = (await json(["show", AUTH, "--lines"])).lines as string[]
  expect(all).toHaveLength(10)
  const lines: string[] = []
  let calls = 0
  for (let args: string[] | undefined = ["show", "--lines", LONG, "--max-tokens", "300"]; args; calls++) {
    const answer: { lines: string[]; truncated?: { continue_with: string } } = await json(args)
    lines.push(...answer.lines)
    args = answer.truncated && wordsOf(answer.truncated.continue_with)
    if (args) expect(args.slice(0, 3)).toEqual(["show", LONG, "--lines"])
  }
  expect(calls).toBeGreaterThan(1)
  expect(lines.map((line) => Number(line.split("\t")[0]))).toEqual(Array.from({ length: 21 }, (_, i) => i + 1))
  expect((await dex(home, ["show", AUTH, "--lines"])).stderr).toContain("Read some: dex show 11111111 --messages 5-10")
})

test("--messages reads chosen messages in full, and continues under its own name", async () => {
  const numbers = async (args: string[], env = {}) =>
    (await json(args, env)).messages.map(({ index }: { index: number }) => index)
  for (const typed of [["--messages", "3,5-6"], ["--messages=3,5-6"]])
    expect(await numbers(["show", AUTH, ...typed])).toEqual([3, 5, 6])
  expect(await numbers(["show", "--session", "current", "--messages", "4"], ENV)).toEqual([4])
  expect(await numbers(["open", "--messages", "4", "current"], ENV)).toEqual([4])
  const { truncated } = await json(["show", AUTH, "--messages", "1-4", "--max-tokens", "200"])
  expect(truncated.continue_with).toMatch(
    new RegExp(`^dex show ${AUTH} --messages \\S+( --from-char \\d+)? --max-tokens 200$`),
  )
  expect(await numbers(wordsOf(truncated.continue_with))).toEqual([2])
})

test("--messages without numbers reads the message that the ref names", async () => {
  const read = async (args: string[], env = {}) =>
    (await json(args, env)).messages.map(({ index }: { index: number }) => index)
  expect(await read(["show", `${AUTH}#4`, "--messages"])).toEqual([4])
  expect(await read(["show", `${AUTH}#4`, "--messages", "--max-tokens", "4000"])).toEqual([4])
  expect(await read(["show", "--messages", "--session", "current", `${AUTH}#4`], ENV)).toEqual([4])
  expect(await error("show", AUTH, "--messages")).toMatch(
    /Which messages\? dex show .*--messages 5,.*--lines` lists them/,
  )
})

test("--timeline shows the context of a message, and continues under its own name", async () => {
  const all = await json(["show", `${AUTH}#5`, "--timeline", "--before", "1", "--after", "2"])
  expect(all).toMatchObject({ message_index: 5, has_more_before: true, has_more_after: true })
  expect(all.lines).toHaveLength(4)
  const { truncated } = await json(["show", `${AUTH}#5`, "--timeline", "--max-tokens", "210"])
  for (const line of [truncated.continue_before, truncated.continue_with]) {
    expect(line).toMatch(new RegExp(`^dex show ${AUTH}#\\d+ --timeline --before \\d+ --after \\d+ --max-tokens 210$`))
    expect((await json(wordsOf(line))).lines.length).toBeGreaterThan(0)
  }
  const { stderr } = await dex(home, ["show", `${AUTH}#5`, "--timeline", "--before", "1", "--after", "1"])
  expect(stderr).toContain("To read the message in full: dex show")
})

test("a message that is longer than the budget names the form that reads all of it", async () => {
  const [{ messages }] = (await json(["show", LONG, "--max-tokens", "330"])).conversations
  expect(messages[0].cut.continue_with).toBe(`dex show ${LONG} --messages 1 --max-tokens 330`)
})

test("a form accepts its own options and no others", async () => {
  expect(await error("show", AUTH, "--lines", "--format", "full")).toContain(
    "dex show --lines has no option --format. See: dex show --lines --help",
  )
  expect(await error("show", AUTH, "--lines", "--timeline")).toContain("dex show --lines has no option --timeline")
  expect(await error("show", AUTH, "--timeline", "--messages", "5")).toContain("has no option --messages")
  expect(await error("show", AUTH, "--tokens-per-msg", "20")).toContain("dex show has no option --tokens-per-msg")
  expect(await error("show", AUTH, "--lines=5")).toContain("--lines takes no value. See: dex show --lines --help")
})

test("a word is never a form: it names a conversation", async () => {
  for (const word of ["lines", "messages", "timeline"]) expect(await error("show", word)).toContain(`"${word}"`)
  expect(await error("show", "--", "--lines")).toContain('"--lines"')
})

test("help and completions name the forms and their options", async () => {
  const help = (await dex(home, ["show", "--help"])).stdout
  for (const form of ["--lines", "--messages 5-10", "--timeline"])
    expect(help).toMatch(new RegExp(`^  dex show REF ${form} +[A-Z]`, "m"))
  expect((await dex(home, ["show", "--timeline", "--help"])).stdout).toMatch(
    /^dex show --timeline \[id\] \[options\][\s\S]*--after N [\s\S]*^Example: dex show 2 --timeline/m,
  )
  const [bash, fish] = [await dex(home, ["completions", "bash"]), await dex(home, ["completions", "fish"])]
  const options = /^ {4}show\|open\|get\) COMPREPLY=.*?-W "([^"]+)"/m.exec(bash.stdout)![1]!.split(" ")
  for (const option of ["--lines", "--messages", "--timeline", "--tokens-per-msg", "--from-char", "--format"])
    expect(options.filter((one) => one === option)).toEqual([option])
  expect(fish.stdout).toMatch(/from show open get' -l lines$/m)
  expect(fish.stdout).toMatch(/from show open get' -l messages -r$/m)
})
