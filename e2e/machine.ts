import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { dex, type Run } from "../test/support/dex.ts"
import { AGENTS, type Agent } from "./agents.ts"
import { type Ran, run } from "./children.ts"
import { type Asked, type Script, startModel } from "./model.ts"

export type Trace = { command: string; about: string }

/** One developer's machine: a home with dex and every agent in its default folder, and a project for each agent. */
export async function setUpMachine(agents: readonly Agent[] = AGENTS) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "agents-")))
  const home = join(root, "home")
  const model = await startModel()
  const projectOf = (agent: Agent) => join(root, "code", agent.name.replace("_", "-"))
  mkdirSync(join(root, "tmp"), { recursive: true })
  for (const agent of agents) {
    makeProject(projectOf(agent), home)
    const { path, content } = agent.settings(model.url)
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), content)
  }

  const runAgent = (
    agent: Agent,
    args: string[],
    env: Record<string, string> = {},
    cwd = projectOf(agent),
  ): Promise<Ran> =>
    run([...agent.command, ...args], {
      cwd,
      env: {
        PATH: process.env.PATH ?? "",
        HOME: home,
        TMPDIR: join(root, "tmp"),
        npm_config_cache: join(root, "npm"),
        ...agent.env(model.url),
        ...env,
      },
    })

  const playWith = async (agent: Agent, env: Record<string, string>, ...scripts: Script[]) => {
    const first = model.asked.length
    model.play(...scripts)
    const ran = await runAgent(agent, agent.args(scripts[0]!.prompt), env)
    return { ran, asked: model.asked.slice(first) }
  }

  return {
    root,
    home,
    model,
    projectOf,
    runAgent,
    /** Gives the agent the first script's prompt. The other scripts are for its sub-agents. */
    play: (agent: Agent, ...scripts: Script[]): Promise<{ ran: Ran; asked: Asked[] }> =>
      playWith(agent, {}, ...scripts),
    /** Like `play`, with more environment variables. */
    playWith,
    dex: (...args: string[]): Promise<Run> => dex(home, args),
    /** A command's output with --json. */
    // biome-ignore lint/suspicious/noExplicitAny: the tests say what they expect of it
    json: async (...args: string[]): Promise<any> => {
      const { code, stdout, stderr } = await dex(home, [...args, "--json"])
      if (stdout === "") throw new Error(`dex ${args.join(" ")} ended with ${code}: ${stderr}`)
      return JSON.parse(stdout)
    },
    /** Requests that the model did not recognise. */
    unknownRequests: model.unknown,
    takeDown: async () => {
      await model.close()
      rmSync(root, { recursive: true, force: true, maxRetries: 20 })
    },
  }
}

export function makeProject(folder: string, home: string): void {
  mkdirSync(folder, { recursive: true })
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: folder, env: { PATH: process.env.PATH, HOME: home } })
  git("init", "-q", "-b", "main")
  git(
    "-c",
    "user.name=A",
    "-c",
    "user.email=a@example.org",
    "commit",
    "-q",
    "--allow-empty",
    "-m",
    `first in ${folder}`,
  )
}
