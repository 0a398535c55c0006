import type { ChildProcess } from "node:child_process"
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { Command } from "./measure.ts"
import { anyOf, type Build, checkIndexedAlike, type Prepared } from "./prepare.ts"

/** One command of dex, and its floor. Each is a process from its start to its end. */
export type Measure = {
  name: string
  what: string
  /** The command's name. If the baseline has no such command, or there is no name, it is not compared. */
  command?: string
  /** The number of runs in each of the five pairs. Short commands vary more. */
  runs: number
  dex: (build: Build, prepared: Prepared, nth: number) => Command
  floor: (prepared: Prepared, nth: number) => Command
  /** A run must print this to count. */
  answer: RegExp
  /** With fewer messages dex works in another way, so nothing is measured. */
  minMessages?: number
  /** Throws if the two sides did not do the same. */
  check?: (prepared: Prepared) => void
}

const PAGES = 5

const coldSync: Omit<Measure, "name" | "what"> = {
  ...{ command: "sync", runs: 1, answer: /\d/ },
  dex: ({ dex, env, home }) => ({ args: [dex, "sync"], env: { ...env, HOME: emptied(`${home}-sync`) }, cwd: home }),
  floor: ({ transcripts, floor, folder }) => ({
    args: [
      floor.program,
      "sync",
      transcripts,
      floor.texts,
      floor.schema,
      join(emptied(floorFolder(folder)), "index.db"),
    ],
  }),
  check: ({ folder, floor }) => checkIndexedAlike(floor.index, join(floorFolder(folder), "index.db")),
}

export const measures: Measure[] = [
  { name: "sync", what: "`dex sync`, everything new", ...coldSync },
  { name: "sync-threads", what: "`dex sync`, everything new, read in threads", minMessages: 9_000, ...coldSync },
  {
    ...{ name: "sync-again", command: "sync", runs: 3, answer: /^/ },
    what: "`dex sync`, nothing new",
    dex: ({ dex, env, home }) => ({ args: [dex, "sync"], env, cwd: home }),
    floor: ({ floor }) => ({ args: [floor.program, "nothing"] }),
  },
  {
    ...{ name: "search", command: "search", runs: 3, answer: /\d/ },
    what: "`dex search`, one to four words",
    dex: ({ dex, env, home }, { words }, nth) => ({
      args: [dex, "search", "--json", ...someOf(words, nth)],
      env,
      cwd: home,
    }),
    floor: ({ floor, words }, nth) => ({ args: [floor.program, "search", floor.index, anyOf(someOf(words, nth))] }),
  },
  {
    ...{ name: "list", command: "list", runs: 3, answer: /project-|solved-|\w/ },
    what: "`dex list --all`",
    dex: ({ dex, env, home }) => ({ args: [dex, "list", "--all"], env, cwd: home }),
    floor: ({ floor }) => ({ args: [floor.program, "list", floor.history] }),
  },
  {
    ...{ name: "show", command: "show", runs: 3, answer: /\w{4}/ },
    what: "`dex show --format full` of the longest conversation",
    dex: ({ dex, env, home }, { conversation }) => ({
      args: [dex, "show", conversation, "--format", "full"],
      env,
      cwd: home,
    }),
    floor: ({ floor, conversation }) => ({ args: [floor.program, "show", floor.history, conversation] }),
  },
  {
    ...{ name: "hook", command: "hook", runs: 3, answer: /./ },
    what: "`dex hook` after a failed command that was solved before",
    dex: ({ dex, env, home }, prepared, nth) => ({
      ...{ args: [dex, "hook", "claude_code", "PostToolUseFailure"], env, cwd: home },
      input: failureInput(prepared, nth),
    }),
    floor: (prepared, nth) => {
      const { knowledge, suggestions, program } = prepared.floor
      const { match, project } = failureOf(prepared, nth)
      return { args: [program, "hook", knowledge, suggestions, match, project], input: failureInput(prepared, nth) }
    },
  },
  {
    ...{ name: "hook-prompt", runs: 3, answer: /^/ },
    what: "`dex hook` at a prompt of 50 words",
    dex: ({ dex, env, home }, prepared, nth) => ({
      ...{ args: [dex, "hook", "claude_code", "UserPromptSubmit"], env, cwd: home },
      input: promptInput(prepared, nth),
    }),
    floor: (prepared, nth) => {
      const { knowledge, history, program } = prepared.floor
      const { match, project } = promptOf(prepared, nth)
      return { args: [program, "hook-prompt", knowledge, history, match, project], input: promptInput(prepared, nth) }
    },
  },
  {
    ...{ name: "initialize", command: "serve", runs: 3, answer: /"protocolVersion"/ },
    what: "`dex serve`: MCP initialize",
    dex: ({ dex, env, home }) => ({ args: [dex, "serve"], env, cwd: home, drive: asking() }),
    floor: ({ floor }) => ({ args: [floor.program, "initialize"], drive: asking() }),
  },
  {
    ...{ name: "first-search", command: "serve", runs: 3, answer: /^(?!.*"isError":true).*"result"/ },
    what: "`dex serve`: MCP initialize, and the first `dex_search`",
    dex: ({ dex, env, home }, { words }, nth) => ({
      ...{ args: [dex, "serve"], env, cwd: home },
      drive: asking(someOf(words, nth).join(" ")),
    }),
    floor: ({ floor, words }, nth) => ({
      args: [floor.program, "first-search", floor.index, anyOf(someOf(words, nth))],
      drive: asking("words"),
    }),
  },
  {
    ...{ name: "usage", command: "usage", runs: 3, answer: /\d{4}-\d\d-\d\d/ },
    what: "`dex usage`",
    dex: ({ dex, env, home }) => ({ args: [dex, "usage"], env, cwd: home }),
    floor: ({ floor }) => ({ args: [floor.program, "usage", floor.spending] }),
  },
  {
    ...{ name: "home-page", command: "view", runs: 2, answer: /<(?:main|p)\b/ },
    what: `\`dex view\`: start, and the home page ${PAGES} times`,
    dex: ({ dex, env, home }) => ({ args: [dex, "view", "--no-open"], env, cwd: home, drive: loading("") }),
    floor: ({ floor }) => ({ args: [floor.program, "home", floor.history], drive: loading("") }),
  },
  {
    ...{ name: "reading-page", command: "view", runs: 2, answer: /<(?:main|p)\b/ },
    what: `\`dex view\`: start, and the page of the longest conversation ${PAGES} times`,
    dex: ({ dex, env, home }, { conversation }) => ({
      ...{ args: [dex, "view", "--no-open"], env, cwd: home },
      drive: loading(`c/${encodeURIComponent(conversation)}`),
    }),
    floor: ({ floor, conversation }) => ({
      args: [floor.program, "reading", floor.history, conversation],
      drive: loading(""),
    }),
  },
]

const floorFolder = (folder: string) => join(folder, "sync-floor")

function emptied(folder: string): string {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  return folder
}

/** Returns one to four words, the same for every side of a pair. */
function someOf(words: string[], nth: number): string[] {
  return Array.from({ length: 1 + ((nth + 4) % 4) }, (_, i) => words[(4 * nth + 4 + i) % words.length]!)
}

function failureOf({ failures }: Prepared, nth: number) {
  return failures[(nth + 1) % failures.length]!
}

/** Uses a new session each time, because dex does not repeat itself within one. */
function failureInput(prepared: Prepared, nth: number): string {
  const { project, command, error } = failureOf(prepared, nth)
  const session_id = `bench-${process.pid}-${nth}-${performance.now()}`
  return JSON.stringify({ session_id, cwd: project, tool_name: "Bash", tool_input: { command }, error })
}

function promptOf({ prompts }: Prepared, nth: number) {
  return prompts[(nth + 1) % prompts.length]!
}

function promptInput(prepared: Prepared, nth: number): string {
  const { project, prompt } = promptOf(prepared, nth)
  const session_id = `bench-${process.pid}-${nth}-${performance.now()}`
  return JSON.stringify({ session_id, cwd: project, hook_event_name: "UserPromptSubmit", prompt })
}

/** An agent that connects, optionally makes one request, and disconnects. */
function asking(query?: string): (child: ChildProcess) => Promise<string> {
  return async (child) => {
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
    const send = (message: object) => child.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
    const ask = async (id: number, method: string, params: object): Promise<string> => {
      send({ id, method, params })
      for (;;) {
        const { value, done } = await lines.next()
        if (done) throw new Error(`The server ended before it answered ${method}`)
        if ((JSON.parse(value) as { id?: number }).id === id) return value
      }
    }
    const clientInfo = { name: "bench", version: "1" }
    let answer = await ask(1, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo })
    send({ method: "notifications/initialized" })
    if (query !== undefined) answer = await ask(2, "tools/call", { name: "dex_search", arguments: { query } })
    child.stdin!.end()
    return answer
  }
}

/**
 * A browser that logs in and loads a page a few times, including what the page loads later. Scripts and styles are not measured.
 */
function loading(path: string): (child: ChildProcess, stop: () => void) => Promise<string> {
  return async (child, stop) => {
    const { value: address, done } = await createInterface({ input: child.stdout! })[Symbol.asyncIterator]().next()
    if (done) throw new Error("The server ended before it said its address")
    const entered = await fetch(address, { redirect: "manual" })
    await entered.text()
    const [, cookie = "", folder = ""] = /^([^;]+);.*\bPath=([^;]+)/.exec(entered.headers.get("set-cookie") ?? "") ?? []
    const base = new URL(`${folder}/`, address)
    const get = async (url: URL) => {
      const response = await fetch(url, { headers: { cookie } })
      if (!response.ok) throw new Error(`${url.pathname} answered ${response.status}`)
      return response.text()
    }
    let page = ""
    for (let i = 0; i < PAGES; i++) {
      const url = new URL(path, base)
      page = await get(url)
      for (const [, late] of page.matchAll(/data-late="([^"]+)"/g))
        await get(new URL(late!.replaceAll("&amp;", "&"), url))
    }
    stop()
    return page
  }
}
