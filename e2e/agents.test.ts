import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { RETRIEVAL_AGENT } from "../src/agents/kit/wiring.ts"
import { offeredTools } from "../src/serve/mcp/definitions.ts"
import { AGENTS, type WorkingAgent } from "./agents.ts"
import { setUpMachine, type Trace } from "./machine.ts"
import { type Asked, resultsSince, type Script, TITLE } from "./model.ts"

// Only the model is simulated. The tests run in order, and later tests search for what happened in earlier ones.

type Name = WorkingAgent["name"]

/** What each agent found out. Only its last message contains it, so a search can find it nowhere else. */
const FACTS: Record<Name, string> = {
  claude_code: "The quillmarsh cache must be cleared before the importer runs.",
  codex: "The brindlefen lock is held until the importer has ended.",
  opencode: "The tarnwick column is empty in every export since May.",
  gemini_cli: "The ospreyholt queue drops what comes twice in a second.",
  copilot: "The wexcombe header is written before the rows are counted.",
  qwen_code: "The larkspire index is built from the wrong end.",
}
const taskOf = (title: string) => `Find out why the importer of ${title} fails`
const wordOf = (name: Name) => FACTS[name].split(" ")[1]!

/** What a connector can read depends on what the agent records: Gemini CLI omits an exit status of 0. */
const RECORDS: Record<Name, { title: "prompt" | "by_model"; exit_status_of_success: 0 | undefined }> = {
  claude_code: { title: "prompt", exit_status_of_success: 0 },
  codex: { title: "prompt", exit_status_of_success: 0 },
  opencode: { title: "by_model", exit_status_of_success: 0 },
  gemini_cli: { title: "prompt", exit_status_of_success: undefined },
  copilot: { title: "prompt", exit_status_of_success: 0 },
  qwen_code: { title: "prompt", exit_status_of_success: 0 },
}

const OFFERED = offeredTools.map(({ mcp }) => mcp.name)

const refs = new Map<Name, string>()
const report: string[] = []
let machine: Awaited<ReturnType<typeof setUpMachine>>

beforeAll(async () => {
  machine = await setUpMachine()
})

afterAll(async () => {
  await machine.takeDown()
  console.log(report.join("\n"))
})

describe.each(AGENTS)("$title", (agent) => {
  test("is the pinned version", async () => {
    const { dependencies } = JSON.parse(readFileSync(join(import.meta.dirname, "package.json"), "utf8"))
    const { stdout } = await machine.runAgent(agent, ["--version"])
    expect(/\d+\.\d+\.\d+/.exec(stdout)?.[0]).toBe(dependencies[agent.package])
  })

  test("does a task, and dex reads its messages, commands and edits correctly", async () => {
    const project = machine.projectOf(agent)
    const notes = join(project, "notes.txt")
    const task = taskOf(agent.title)
    await play(agent, {
      prompt: task,
      steps: [
        { text: "I look at the log first.", call: agent.shell("cat importer.log; exit 3") },
        { call: agent.shell("echo 12 rows") },
        { call: agent.write(notes, "one\ntwo\n") },
        { text: FACTS[agent.name] },
      ],
    })
    expect(readFileSync(notes, "utf8")).toBe("one\ntwo\n")
    expect((await machine.dex("sync")).code).toBe(0)

    const { conversations } = await machine.json("list", "--all", "--source", agent.name)
    expect(conversations).toEqual([
      expect.objectContaining({
        title: titleOf(agent, task),
        project,
        files: 1,
        lines_added: 2,
        lines_removed: 0,
      }),
    ])
    const [{ id, message_count }] = conversations
    refs.set(agent.name, id)

    const messages: Message[] = (await machine.json("show", id, "--messages", "1-100")).messages
    expect(messages).toHaveLength(message_count)
    const parts = messages.flatMap((message) => message.parts)
    const saidBy = (who: string) =>
      parts.flatMap(({ type, origin, text }) => (type === "text" && origin === who ? text : []))
    expect(saidBy("person")).toEqual([task])
    expect(saidBy("agent")).toEqual(["I look at the log first.", FACTS[agent.name]])
    const calls = parts.filter(({ type }) => type === "tool_call")
    const shell = agent.shell("").tool
    expect(calls.map(({ tool }) => tool)).toEqual([shell, shell, agent.write("", "").tool])
    const results = parts.filter(({ type }) => type === "tool_result")
    expect(results.map(({ call_id }) => call_id)).toEqual(calls.map(({ call_id }) => call_id))
    expect(results.map(({ is_error }) => is_error)).toEqual([true, false, false])
    expect(results[0]!.text).toContain("importer.log: No such file or directory")
    expect(results[1]!.text).toContain("12 rows")

    const effects = messages.flatMap((message) => message.effects ?? [])
    const of = (wanted: string) =>
      effects.filter(({ type }) => type === wanted).map(({ type: _, call_id: __, ...told }) => told)
    expect(of("command")).toEqual([
      {
        command: "cat importer.log; exit 3",
        exit_status: 3,
        failed: true,
        error: "cat: importer.log: No such file or directory",
      },
      { command: "echo 12 rows", exit_status: RECORDS[agent.name].exit_status_of_success, failed: false },
    ])
    expect(of("file")).toEqual([{ path: notes, action: "edited", added: 2, removed: 0 }])
  })
})

describe("with dex installed", () => {
  let before: Files
  let after: Files

  beforeAll(async () => {
    const names = AGENTS.map(({ name }) => name)
    const plan: { files: { path: string }[] } = await machine.json("install", ...names)
    before = contentOf(plan.files.map(({ path }) => path))
    const { code, stderr } = await machine.dex("install", ...names, "--yes")
    expect(code, stderr).toBe(0)
    after = contentOf(before.keys())
    expect([...before].filter(([path, content]) => after.get(path) === content)).toEqual([])
  })

  test.each(AGENTS)("$title searches for what each of the other agents found, and gets it back", async (agent) => {
    const others = AGENTS.flatMap(({ name }) => (name === agent.name ? [] : name))
    const call = (tool: string, input: Record<string, unknown>) => agent.callTool?.(tool, input) ?? { tool, input }
    const prompt = `Ask the memory what was found out about the importers, for ${agent.title}`
    const { asked, traces } = await playTraced(agent, {
      prompt,
      steps: [
        ...(agent.findTools ? [{ call: agent.findTools(`dex ${OFFERED.join(" ")}`) }] : []),
        ...others.flatMap((name) => [
          { call: call("dex_search", { query: wordOf(name) }) },
          { call: (found: string) => call("dex_get", { ids: [refIn(found, name)] }) },
        ]),
        { text: "That is all." },
      ],
    })
    const told = resultsSince(prompt, asked)
    // If the agent calls tools through another tool, only the result of its tool search names them.
    const offered = agent.callTool ? (told[0]!.match(/\bmcp__\w+/g) ?? []) : namesOffered(asked)
    expect(OFFERED.filter((name) => !offered.some((one) => isTool(name, one)))).toEqual([])
    const results = told.slice(agent.findTools ? 1 : 0)
    expect(results).toHaveLength(2 * others.length)
    others.forEach((name, i) => {
      const [found, got] = results.slice(2 * i)
      expect(found, `searched for what ${name} found`).toContain(refOf(name))
      expect(got, `got what ${name} found`).toContain(refOf(name))
      expect(got).toContain(FACTS[name])
    })
    expect(traces.map(({ command, about }) => `${command} ${about.replace(/#\d+$/, "")}`)).toEqual(
      others.flatMap((name) => [`search ${wordOf(name)}`, `get ${refOf(name)}`]),
    )
    report.push(
      `${agent.title} shows its model ${results[0]!.includes("next: ") ? "the text" : "the JSON"} of an answer`,
    )
  })

  test.each(AGENTS.filter(({ delegate }) => delegate))(
    "the retrieval agent of $title lists, outlines and reads conversations in a shell",
    async (agent) => {
      const launcher = join(machine.home, ".dex", "bin", "dex")
      const wanted = refOf("gemini_cli")
      const prompt = `Let the retrieval agent look up the queue, for ${agent.title}`
      const question = `What is known of the queue? Asked by ${agent.title}`
      const { asked, traces } = await playTraced(
        agent,
        { prompt, steps: [{ call: agent.delegate!(RETRIEVAL_AGENT, question) }, { text: "Thank you." }] },
        {
          prompt: question,
          steps: [
            { call: agent.shell(`${launcher} list --source gemini_cli --json`) },
            {
              call: (listed) =>
                agent.shell(
                  `${launcher} show ${conversationIn(listed, taskOf("Gemini CLI"))} --lines --tokens-per-msg 100 --json`,
                ),
            },
            {
              call: (scanned) => agent.shell(`${launcher} show ${messageIn(scanned, wordOf("gemini_cli"))} --json`),
            },
            { text: "## Found\n- [result] as it was read" },
          ],
        },
      )
      const [listed, scanned, read, ...more] = resultsSince(question, asked)
      expect(more).toEqual([])
      expect(JSON.parse(listed!).conversations.map(({ id }: Listed) => id)).toContain(wanted)
      expect(JSON.parse(scanned!).id).toBe(wanted)
      expect(JSON.parse(read!)).toMatchObject({ id: wanted, messages: [{ parts: [{ text: FACTS.gemini_cli }] }] })
      expect(resultsSince(prompt, asked)).toEqual([expect.stringContaining("[result] as it was read")])
      expect(traces.map(({ command, about }) => `${command} ${about.split(" ")[0]}`)).toEqual([
        `scan ${wanted}`,
        `read ${wanted}`,
      ])

      const changes = namesOffered(asked.filter((one) => isAbout(question, one))).filter((name) =>
        /write|edit/i.test(name),
      )
      expect(changes, "tools that change files").toEqual([])

      await machine.dex("sync")
      const { conversations }: { conversations: Listed[] } = await machine.json("list", "--all", "--source", agent.name)
      const subagents = conversations.filter(({ kind }) => kind === "subagent")
      expect(subagents).toHaveLength(1)
      const [{ parent }] = (await machine.json("show", subagents[0]!.id)).conversations
      expect(conversations.find(({ id }) => id === parent)?.title).toBe(titleOf(agent, prompt))
    },
  )

  test("uninstall removes everything that install added, even from a file that an agent changed in the meantime", async () => {
    const claude = AGENTS.find(({ name }) => name === "claude_code")!
    await machine.runAgent(claude, ["mcp", "add", "--scope", "user", "another", "--", "node", "another.js"])
    const between = contentOf(after.keys())
    const { code, stderr } = await machine.dex("uninstall", "--yes")
    expect(code, stderr).toBe(0)
    const left = contentOf(after.keys())
    const touched = [...after.keys()].filter((path) => between.get(path) !== after.get(path))
    expect(touched).toContain(join(machine.home, ".claude.json"))
    for (const path of after.keys()) {
      if (!touched.includes(path)) expect(left.get(path), path).toBe(before.get(path))
    }
    for (const path of touched) expect(left.get(path), path).not.toContain(join(machine.home, ".dex"))
    expect(left.get(join(machine.home, ".claude.json"))).toContain("another.js")
    expect(existsSync(join(machine.home, ".dex", "bin", "dex"))).toBe(false)
    report.push(
      `written by their agents after install: ${touched.map((path) => path.slice(machine.home.length + 1)).join(", ")}`,
    )
  })
})

test("dex reads everything that the agents wrote, without unknown or skipped records", async () => {
  await machine.dex("sync")
  const { sources } = await machine.json("sources")
  for (const { name, title, package: source } of AGENTS) {
    const told = sources.find((one: { source: string }) => one.source === name)
    const { kept, messages, unknown, skipped, unreadable } = told
    const version = JSON.parse(
      readFileSync(join(import.meta.dirname, "node_modules", source, "package.json"), "utf8"),
    ).version
    report.push(
      `${title} ${version}: ${kept} conversations, ${messages} messages; unknown record types: ${JSON.stringify(unknown)}; skipped: ${JSON.stringify(skipped)}`,
    )
    expect.soft({ unknown, skipped, unreadable }, title).toEqual({ unknown: {}, skipped: {}, unreadable: [] })
  }
  expect(machine.unknownRequests, "requests that the scripted model does not know").toEqual([])
})

type Part = { type: string; text: string; origin: string; tool?: string; call_id?: string; is_error?: boolean }
type Listed = { id: string; kind: string; title: string }
type Message = { parts: Part[]; effects?: Record<string, unknown>[] }
/** The content by path, or undefined if the file does not exist. */
type Files = Map<string, string | undefined>

async function play(agent: WorkingAgent, ...scripts: Script[]): Promise<Asked[]> {
  const { ran, asked } = await machine.play(agent, ...scripts)
  report.push(`${agent.title}, ${(ran.ms / 1000).toFixed(1)} s: ${scripts[0]!.prompt}`)
  expect(ran.code, `${ran.stdout.slice(-2000)}\n${ran.stderr.slice(-2000)}`).toBe(0)
  return asked
}

/** Also returns the traces that dex wrote during the run. */
async function playTraced(agent: WorkingAgent, ...scripts: Script[]): Promise<{ asked: Asked[]; traces: Trace[] }> {
  const traces = async (): Promise<Trace[]> => (await machine.json("traces", "--limit", "1000")).traces
  const earlier = await traces()
  const asked = await play(agent, ...scripts)
  return { asked, traces: (await traces()).slice(earlier.length) }
}

function refOf(name: Name): string {
  const ref = refs.get(name)
  if (ref === undefined) throw new Error(`What ${name} did was not read: its own test failed, or did not run.`)
  return ref
}

function titleOf({ name }: WorkingAgent, prompt: string): string {
  return RECORDS[name].title === "prompt" ? prompt : TITLE
}

function namesOffered(asked: Asked[]): string[] {
  return asked.flatMap(({ offered }) => offered.map(({ name }) => name))
}

/** Agents prefix the names of a server's tools with the server's name. */
function isTool(name: string, offered: string): boolean {
  return offered === name || offered.endsWith(`_${name}`) || offered.endsWith(`-${name}`)
}

function isAbout(prompt: string, { turns }: Asked): boolean {
  return turns.some(({ role, text }) => role === "user" && text.includes(prompt))
}

/** The ref that a model would choose from a search result: the first one of this source. */
function refIn(answer: string, source: Name): string {
  return new RegExp(`${source}:[\\w-]+(#\\d+)?`).exec(answer)?.[0] ?? "none"
}

/** The id that a model would choose from a list: that of the conversation with this title. */
function conversationIn(listed: string, title: string): string {
  const { conversations }: { conversations: Listed[] } = JSON.parse(listed)
  return conversations.find((one) => one.title === title)?.id ?? "none"
}

/** The arguments with which a model would read a message: the conversation, and the number of the line with the word. */
function messageIn(scanned: string, word: string): string {
  const { id, lines }: { id: string; lines: string[] } = JSON.parse(scanned)
  return `${id} --messages ${lines.find((line) => line.includes(word))?.split("\t")[0]}`
}

function contentOf(paths: Iterable<string>): Files {
  return new Map([...paths].map((path) => [path, existsSync(path) ? readFileSync(path, "latin1") : undefined]))
}
