import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Agent, agentIn } from "../agents.ts"
import { run } from "../children.ts"
import { INSTALL_SCRIPTS } from "../install-scripts.mjs"

/** `newest` is the newest version on npm. It may need a package that npm does not have (yet), and then an older one is installed. */
export type Installed = { newest?: string; version?: string; agent?: Agent; problem?: string }

/** How many of the newest versions are tried. */
const MAX_TRIES = 8

/** Installs the newest version of an agent that can be installed, in a folder of its own and without a lock file. Never throws. */
export async function installNewest(agent: Agent, folder: string): Promise<Installed> {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n')
  const listed = await npm(folder, "view", agent.package, "versions", "--json")
  const versions = listed.code === 0 ? releasesIn(listed.stdout) : []
  if (versions.length === 0) return { problem: `npm lists no version of ${agent.package}: ${lastLine(listed)}` }
  const newest = versions[0]!
  const installed = agentIn(join(folder, "node_modules"), agent)
  const problems: string[] = []
  for (const version of versions.slice(0, MAX_TRIES)) {
    const problem = await install(installed, version, folder)
    if (problem === undefined) return { newest, version, agent: installed }
    problems.push(`${version}: ${problem}`)
  }
  return { newest, problem: problems[0]! }
}

async function install(agent: Agent, version: string, folder: string): Promise<string | undefined> {
  const options = ["--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"]
  const ran = await npm(folder, "install", ...options, `${agent.package}@${version}`)
  if (ran.code !== 0) return errorIn(ran.stderr) ?? lastLine(ran)
  const modules = join(folder, "node_modules")
  for (const script of INSTALL_SCRIPTS.filter((path) => path.startsWith(`${agent.package}/`))) {
    const env = { PATH: process.env.PATH ?? "", HOME: folder }
    const scripted = await run([process.execPath, join(modules, script)], { cwd: modules, env })
    if (scripted.code !== 0) return `${script}: ${lastLine(scripted)}`
  }
  const missing = agent.command.find((word) => word.startsWith(modules) && !existsSync(word))
  if (missing) return `there is no ${missing.slice(modules.length + 1)}`
  const found = JSON.parse(readFileSync(join(modules, agent.package, "package.json"), "utf8")).version
  return found === version ? undefined : `npm installed ${found}`
}

function npm(folder: string, ...args: string[]) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))
  return run(["npm", ...args], { cwd: folder, env: env as Record<string, string> })
}

/** The releases in what `npm view versions` prints, newest first. */
export function releasesIn(json: string): string[] {
  const versions: unknown = JSON.parse(json)
  const listed: unknown[] = Array.isArray(versions) ? versions : [versions]
  return listed
    .filter((version) => typeof version === "string")
    .filter((version) => /^\d+\.\d+\.\d+$/.test(version))
    .reverse()
}

/** What npm says is wrong, without the line that names its log. */
function errorIn(stderr: string): string | undefined {
  return /npm error (?!code )(?:notarget )?(.+)/.exec(stderr)?.[1]
}

function lastLine({ stdout, stderr }: { stdout: string; stderr: string }): string {
  return (stderr.trim() || stdout.trim()).split("\n").at(-1) ?? ""
}
