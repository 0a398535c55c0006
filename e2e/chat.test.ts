import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import { dex } from "../test/support/dex.ts"
import { claudeSession } from "../test/support/home.ts"
import { type ModelServerRequest, modelServer } from "../test/support/model-server.ts"
import { tempDir, treeHash } from "../test/support/temp.ts"

const OPENCODE = fileURLToPath(new URL("node_modules/.bin/opencode", import.meta.url))

/** A developer's home with their own OpenCode in use, a project under git, and one conversation. */
function setUp() {
  const root = tempDir()
  const home = join(root, "home")
  const project = join(root, "code")
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), content)
  }
  write(".config/opencode/opencode.json", '{ "share": "disabled", "theme": "mine" }\n')
  write(".local/share/opencode/auth.json", "{}\n")
  write(".local/share/opencode/storage/session/x/ses_1.json", "{}\n")
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-10-03T10:00:00Z",
    turns: [{ user: "CI is red" }, { assistant: "The zeppelin test binds to port 8080, which is taken." }],
  })
  mkdirSync(project)
  writeFileSync(join(project, "opencode.json"), '{ "agent": { "historian": { "prompt": "HIJACKED" } } }')
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: project, env: { PATH: process.env.PATH, HOME: root } })
  git("init", "-q")
  // With a commit, OpenCode would store the project's id in the repository.
  git("-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "first")
  const bin = join(root, "bin")
  mkdirSync(bin)
  symlinkSync(OPENCODE, join(bin, "opencode"))
  const env = { PATH: `${bin}:${process.env.PATH}`, TMPDIR: join(root, "tmp") }
  mkdirSync(env.TMPDIR)
  return { root, home, project, env }
}

/** Everything but dex's own folder. */
const outside = (home: string) =>
  Object.fromEntries(Object.entries(treeHash(home)).filter(([path]) => !path.startsWith(".dex/")))

const offered = ({ body }: ModelServerRequest) => (body.tools ?? []).map((tool) => tool.function.name).sort()

/** The historian, OpenCode's main agent here, gives the task to the searcher, which searches; then both answer. */
function script(asked: ModelServerRequest) {
  const { messages, tools } = asked.body
  if (!tools?.length) return [{ text: "A title" }]
  const said = JSON.stringify(messages)
  const hasResult = messages.some(({ role }) => role === "tool")
  if (said.includes("SEARCH FOR ME") && !said.includes("WHAT WAS IT"))
    return hasResult
      ? [{ text: "claude_code:11111111#2 says that port 8080 is taken." }]
      : [{ calls: [{ id: "s", name: "dex_dex_search", arguments: JSON.stringify({ query: "zeppelin test" }) }] }]
  return hasResult
    ? [{ text: "FINAL: port 8080 was taken." }]
    : [
        {
          calls: [
            {
              id: "t",
              name: "task",
              arguments: JSON.stringify({ subagent_type: "searcher", description: "Search", prompt: "SEARCH FOR ME" }),
            },
          ],
        },
      ]
}

test("in the real OpenCode a subagent searches with dex, has no other tools, and changes nothing outside the chat's folder", {
  timeout: 240_000,
}, async () => {
  const { root, home, project, env } = setUp()
  expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })
  const server = await modelServer(script)
  const before = { home: outside(home), project: treeHash(project) }
  const run = await dex(
    home,
    ["chat", "--opencode", "WHAT WAS IT with the test"],
    { ...env, DEX_LLM_PROVIDER: server.url, DEX_LLM_API_KEY: "sk-scripted-key" },
    undefined,
    "",
    project,
  )
  expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining("FINAL: port 8080 was taken.") })

  const working = server.requests.filter((one) => offered(one).length > 0)
  const searcher = working.filter(({ body }) => JSON.stringify(body.messages).includes("SEARCH FOR ME"))
  expect(searcher.length).toBeGreaterThan(1)
  const said = JSON.stringify(server.requests.map(({ body }) => body.messages))
  expect(said.includes("binds to port 8080, which is taken")).toBe(true)
  expect(said.includes("HIJACKED")).toBe(false)
  for (const one of working) for (const name of offered(one)) expect(name).toMatch(/^(?:task|dex_dex_[a-z_]+)$/)
  expect(offered(working[0]!)).toContain("dex_dex_search")
  expect(server.requests[0]!.headers.authorization).toBe("Bearer sk-scripted-key")

  expect({ home: outside(home), project: treeHash(project) }).toEqual(before)
  expect(readdirSync(env.TMPDIR).filter((name) => name !== "node-compile-cache")).toEqual([])
  const chats = join(home, ".dex/chat-sessions")
  const [chat] = readdirSync(chats)
  expect(statSync(join(chats, chat!)).mode & 0o777).toBe(0o700)
  expect(readdirSync(join(chats, chat!, "opencode")).sort()).toEqual(["config", "data", "state", "work"])
  expect(readdirSync(join(chats, chat!, "opencode/data/opencode")).join()).toContain("opencode.db")
  expect(JSON.parse(readFileSync(join(chats, chat!, "metadata.json"), "utf8"))).toMatchObject({ agent: "opencode" })
  for (const name of ["opencode.json", "metadata.json"])
    expect(readFileSync(join(chats, chat!, name), "utf8")).not.toContain("sk-scripted-key")
  await dex(home, ["sync"], env, undefined, "", root)
  expect((await dex(home, ["list", "--all", "--json"])).stdout).not.toMatch(/"id":"(?:opencode|dex_chat):/)
})

test("without a model, without OpenCode or inside a repository, it says what to do and leaves no files", async () => {
  const { home, project, env } = setUp()
  const chat = (more: Record<string, string>, ...args: string[]) =>
    dex(home, ["chat", "--opencode", "x", ...args], { ...env, ...more }, undefined, "", project)
  const model = { DEX_LLM_PROVIDER: "http://127.0.0.1:9/v1" }
  expect(await chat({})).toMatchObject({ code: 2, stderr: expect.stringContaining("dex config set llm.provider") })
  expect(await chat(model, "-c", "a")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("cannot be used with --opencode"),
  })
  expect(await chat(model, "--json")).toMatchObject({ code: 2, stderr: expect.stringContaining("--json") })
  expect(await chat({ ...model, DEX_HOME: join(project, "dex") })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("inside the git repository"),
  })
  const noProgram = await chat({ ...model, PATH: "/nonexistent" })
  expect(noProgram).toMatchObject({ code: 2, stderr: expect.stringContaining("npm install -g opencode-ai") })
  expect(existsSync(join(home, ".dex/chat-sessions")) ? readdirSync(join(home, ".dex/chat-sessions")) : []).toEqual([])
})
