import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, expect, test } from "vitest"
import { commands } from "../../src/cli/commands.ts"
import { offeredTools } from "../../src/serve/mcp/definitions.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { itemsFor, refsIn } from "../answers/map-script.ts"
import { connect } from "../mcp/client.ts"
import { connectHttp, serveHttp } from "../mcp/http-client.ts"
import { call, putSession, SESSION, writer } from "../support/claude-code.ts"
import { DEX, dex, PATIENT } from "../support/dex.ts"
import { HIDDEN, hiddenIn } from "../support/hidden.ts"
import { modelServer } from "../support/model-server.ts"
import { itemOf, suggestionOf } from "../support/suggestions.ts"
import { sharedTempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

/** All invisible characters, which `hostile` adds after every word. */
const H = HIDDEN.join("")
const hostile = (text: string) => text.replaceAll(/(?<=\w)(?= |$)/g, H)
/** Without the characters that cannot be in a program's argument. */
const typed = (text: string) => hostile(text).replaceAll("\0", "")
const REF = `claude_code:${SESSION}`
const ERROR = `TypeError: quokkaword is not a function\n    at ${H} here`

const home = sharedTempDir()
const project = join(home, "shop")
const inside = (args: string[], env: Record<string, string> = {}) => warmDex(home, args, env, project)

beforeAll(async () => {
  mkdirSync(join(project, "src"), { recursive: true })
  execFileSync("git", ["init", "-q", "-b", `main${"\u200b\u{e0041}"}`, project])
  const file = join(project, "src", `token${"\u202e\u{e0041}\u200b"}.ts`)
  writeFileSync(file, "export const a = 1\n")
  writeFileSync(
    join(project, "guide.md"),
    `# ${typed("Guide")}\n\n${typed("All zebra words")}\n\n## ${typed("Ports")}\n\nzebra\n`,
  )
  const git = ["-c", "user.name=d", "-c", "user.email=d@example.org"]
  execFileSync("git", ["add", "."], { cwd: project })
  execFileSync("git", [...git, "commit", "-qm", typed("clock: zebra step")], { cwd: project })
  const transcript = writer({ cwd: project, gitBranch: hostile("main"), version: hostile("2.1") })
  transcript.prompt(hostile("Make the zebra tests pass"))
  run("c1", ERROR, true)
  edit("e1", join(project, "src/token.ts"))
  run("c2", hostile("12 passed"), false)
  run(
    "c3",
    `FAIL src/a.test.ts > ${hostile("zebra refreshes")}\nError: ${hostile("expected zebra")}`,
    true,
    "npx vitest run src/a.test.ts",
  )
  run("c4", `[main 1a2b3c4] ${hostile("auth: zebra")}\n 1 file changed`, false, `git commit -m '${hostile("zebra")}'`)
  transcript.answer("m_t", [call("t1", hostile("Strange"), { [hostile("field")]: hostile("zebra value") })])
  transcript.result("t1", hostile("zebra result"))
  transcript.prompt(hostile("We decided to keep zebra prices as integers of cents."))
  transcript.add({ type: hostile("odd-type") })
  transcript.answer("m_z", [{ type: "text", text: hostile("The zebra answer is 42.") }])
  transcript.plain({ type: "custom-title", customTitle: hostile("About zebra"), sessionId: SESSION })
  putSession(home, transcript.records)
  expect(await inside(["sync"])).toMatchObject({ code: 0 })
  expect(await inside(["docs", "add", project, "--name", "guide"])).toMatchObject({ code: 0 })
  const suggestions = openSuggestions(join(home, ".dex", "suggest.db"))
  const item = itemOf({ title: hostile("a zebra"), summary: hostile("b"), reason: hostile("c"), ref: `${REF}#2`, file })
  suggestions.save(suggestionOf("0f0f0f", { moment: { project, file, session: hostile("now") }, items: [item] }))
  suggestions.close()

  function edit(id: string, filePath: string) {
    const input = { file_path: filePath, old_string: hostile("a"), new_string: hostile("b") }
    transcript.answer(`m_${id}`, [call(id, "Edit", input)])
    const lines = ["-a", `+${hostile("readToken()")}`]
    const structuredPatch = [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines }]
    transcript.result(id, hostile("The file was updated."), { toolUseResult: { filePath, structuredPatch } })
  }
  function run(id: string, output: string, isError: boolean, command = "npm test") {
    transcript.answer(`m_${id}`, [call(id, "Bash", { command })])
    const result = isError ? `Error: ${output}` : { stdout: output, stderr: "", interrupted: false }
    transcript.result(id, output, { toolUseResult: result }, { is_error: isError })
  }
})

/** Every command, in the forms that show others' text. Commands that change something come last. */
const CASES: Record<string, string[][]> = {
  search: [["zebra"], ["zebra", "--by", "message", "--explain"], ["12", "--limit", "50"]],
  list: [[], ["--all"]],
  show: [[SESSION, "--format", "full"], [SESSION], [`${SESSION}#2`], [SESSION, "--format", "outline"]],
  timeline: [[`${SESSION}#5`], [`${SESSION}#5`, "--session", "all"]],
  scan: [[SESSION]],
  read: [
    [SESSION, "1-20"],
    [SESSION, "1-20", "--show", "text"],
  ],
  resume: [[SESSION]],
  handover: [[SESSION, "--print"]],
  fix: [["quokkaword is not a function"]],
  why: [["HEAD"], ["guide.md"], ["HEAD", "--pr"]],
  blame: [["src"], ["HEAD"], ["guide.md"], ["guide.md", "--porcelain"]],
  recover: [["src/token.ts"], ["src/token.ts", "--at", REF, "--print"]],
  suggest: [["--error", "quokkaword is not a function"], ["--file", "src/a.ts"], []],
  tests: [[]],
  decisions: [["--all"]],
  suggestions: [["--all"]],
  feedback: [["0f0f", "used", "--item", "1"]],
  subscribe: [[typed("topic:zebra")]],
  subscriptions: [[]],
  unsubscribe: [],
  docs: [["list"], ["list", "guide"], ["outline", "docs:guide/guide.md"], ["show", "docs:guide/guide.md"]],
  traces: [[]],
  trace: [[]],
  report: [[]],
  stats: [[]],
  usage: [[], ["project"], ["branch"], ["conversation"], ["commit"], ["model"]],
  guide: [[]],
  sync: [[]],
  sources: [[]],
  doctor: [[]],
  secrets: [[]],
  project: [[]],
  private: [[project, "--off"]],
  mute: [["--list"]],
  eval: [["--mine"]],
  config: [[]],
  ask: [["what is the zebra answer"]],
  chat: [["what is the zebra answer"]],
  map: [["collect zebras"]],
  digest: [["--facts"], ["--period", "week"]],
  rules: [[]],
  install: [["claude_code"]],
  uninstall: [["claude_code"]],
  watch: [["--status"]],
  note: [[typed("zebras are never striped")], []],
  reindex: [[]],
  gc: [[]],
  share: [
    [SESSION, "--print"],
    [SESSION, "--print", "--format", "markdown"],
  ],
  hub: [["status"], ["hold"], ["share", "--dry-run", "--name", "acme/shop"]],
  backup: [[join(home, "copy.db")]],
  import: [], // it merges other histories only
  restore: [[join(home, "copy.db"), "--replace"]],
  forget: [[SESSION]],
}

test("no command prints invisible characters, as JSON or as text", async () => {
  expect(commands.map(({ tool }) => tool.name).filter((name) => !Object.hasOwn(CASES, name))).toEqual([])
  const model = await modelServer((request) => {
    const isRules = JSON.stringify(request.body).includes("contradictions")
    const rules = refsIn(request).map((ref) => ({ rule: hostile("do"), kind: "other", refs: [ref] }))
    const items = itemsFor(request).map((one) => ({ ...one, text: hostile("seen zebra") }))
    return [{ text: JSON.stringify(isRules ? { rules, contradictions: [] } : { items }) }]
  })
  const env = { DEX_LLM_PROVIDER: model.url }
  const leaks: unknown[] = []
  const silent: string[] = []
  for (const [name, forms] of Object.entries(CASES)) {
    for (const form of forms) {
      const run = await inside([name, ...form, "--json"], env)
      const last = run.stdout.trimEnd().split("\n").at(-1)!
      if (run.code === 2 && run.stdout === "") silent.push(`${name} ${run.stderr}`)
      const found = new Set(
        run.stdout === ""
          ? []
          : [...hiddenIn(JSON.stringify(textsIn(JSON.parse(last)))), ...hiddenIn(run.stdout.replaceAll("\n", ""))],
      )
      if (found.size > 0) leaks.push([name, form, [...found].join(" ")])
      // One command runs in its own process, the others in this one; test/support/warm.test.ts proves that both print the same.
      const isOwnProcess = name === "search" && form.length === 1
      const text = await (isOwnProcess
        ? dex(home, [name, ...form], env, DEX, "", project)
        : inside([name, ...form], env))
      const shown = new Set(hiddenIn(text.stdout + text.stderr))
      if (shown.size > 0) leaks.push([`${name} as text`, form, [...shown].join(" ")])
    }
  }
  expect(leaks).toEqual([])
  expect(silent.filter((name) => !name.startsWith("eval"))).toEqual([])
})

/** Every text and name in an answer, decoded, because JSON writes many characters as numbers. */
function textsIn(value: unknown): string {
  if (typeof value === "string") return value.replaceAll(/[\n\t]/g, "")
  if (typeof value !== "object" || value === null) return ""
  return Object.entries(value)
    .flatMap(([name, inner]) => [name, textsIn(inner)])
    .join(" ")
}

const CALLS: Record<string, object> = {
  dex_search: { query: "zebra" },
  dex_list: { all: true },
  dex_get: { ids: [REF], format: "full", max_tokens: 19_000 },
  dex_timeline: { id: `${REF}#5` },
  context_suggest: { error: "quokkaword is not a function" },
  suggestion_feedback: { id: "0f0f", verdict: "used" },
  context_subscribe: { patterns: [hostile("topic:zebra")] },
  dex_stats: {},
  dex_guide: {},
  dex_why: { target: "HEAD" },
  dex_note: { words: [hostile("zebras are never striped")] },
}

test("no MCP tool or resource returns invisible characters, over either transport; the answer says how many were removed", async () => {
  expect(offeredTools.map((tool) => tool.mcp.name).filter((name) => !Object.hasOwn(CALLS, name))).toEqual([])
  const client = await connect(home, { cwd: project })
  const http = await connectHttp(await serveHttp(home), "2025-11-25")
  let reported = 0
  for (const [name, input] of Object.entries(CALLS)) {
    const answer = await client.call(name, input)
    expect([name, answer.isError ?? false]).toEqual([name, false])
    expect([name, hiddenIn(textsIn(answer))]).toEqual([name, []])
    if (/\d+ invisible characters? w(as|ere) removed/.test(answer.content[0]!.text)) reported++
    expect([name, hiddenIn(textsIn(await http.call(name, input)))]).toEqual([name, []])
  }
  expect(reported).toBeGreaterThan(3)
  const plain = await client.call("dex_guide")
  expect(plain.content[0]!.text).not.toMatch(/invisible/)
  for (const [method, params] of [
    ["resources/list", {}],
    ["resources/read", { uri: `dex://conversation/${encodeURIComponent(REF)}` }],
  ] as const)
    expect(hiddenIn(textsIn((await client.request(method, params)).result))).toEqual([])
})

test("no hook prints invisible characters", async () => {
  await inside(["fix", "quokkaword is not a function"])
  const env = { PATH: process.env.PATH, HOME: home, ...PATIENT, DEX_PROACTIVE_MODE: "speak" }
  const printed = spawnSync(process.execPath, [DEX, "hook", "claude_code", "PostToolUseFailure"], {
    input: failedCommand("session"),
    env,
    encoding: "utf8",
  }).stdout
  expect(printed).toContain("token")
  expect(hiddenIn(textsIn(JSON.parse(printed)))).toEqual([])
})

function failedCommand(session: string): string {
  return JSON.stringify({
    session_id: session,
    cwd: project,
    hook_event_name: "PostToolUseFailure",
    tool_name: "Bash",
    tool_input: { command: "npm test" },
    error: `Exit code 1\n${ERROR}`,
  })
}
