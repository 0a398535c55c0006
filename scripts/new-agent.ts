// Starts a new agent from one of its sessions: `npm run new-agent -- some-agent ~/.some-agent/sessions/1.jsonl`. Writes its file,
// a redacted fixture, its test and its record; then the golden file. docs/new-agent.md describes the next steps.
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { basename, dirname, join, relative, resolve, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { AGENTS_FOLDER, agentFiles, agentRecord, type NewAgent, variableOf } from "./new-agent-files.ts"
import { redactedSession } from "./redacted.ts"

const [name = "", session = "", root = fileURLToPath(new URL("..", import.meta.url))] = process.argv.slice(2)
if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name) || session === "") {
  console.error(
    "Which agent, and which session of it? For example: npm run new-agent -- some-agent ~/.some-agent/sessions/1.jsonl",
  )
  process.exit(2)
}
const file = resolve(process.env.INIT_CWD ?? ".", session)
if (!existsSync(file)) stop(`There is no file ${file}.`)
const extension = /\.(json|jsonl|ndjson)$/.exec(file)?.[1] as NewAgent["extension"] | undefined
if (extension === undefined)
  stop(
    "Only sessions in JSON and in JSON lines can be begun with. For a database, start from packages/more-agents/src/crush.ts.",
  )
for (const place of ["src/agents", AGENTS_FOLDER])
  for (const path of [`${place}/${name}`, `${place}/${name}.ts`])
    if (existsSync(join(root, path))) stop(`${path} is there already.`)

const source = name.replaceAll("-", "_")
const inHome = placeInHome(file)
const agent: NewAgent = {
  name,
  source,
  folder: dirname(inHome).split("/"),
  extension,
}
const files = agentFiles(agent)
const fixture = join("test", "fixtures", source, "0-first-session")
for (const [path, text] of Object.entries({
  ...files,
  [join(fixture, "home", inHome)]: redactedSession(readFileSync(file, "utf8")),
  [join(fixture, "README.md")]: "Say here which version of the agent wrote this session, and how it was made.\n",
}))
  put(path, text)
addToList()
console.log(
  `\nNow read ${fixture} to its end: redaction does not know names, paths or customers. Then go on with docs/new-agent.md.`,
)
if (process.argv[4] === undefined) makeGolden()

/** The path below the home folder, so that the fixture has the same path. */
function placeInHome(path: string): string {
  const below = relative(process.env.HOME ?? homedir(), path)
  return below.startsWith("..") || !below.includes(sep)
    ? `.${name}/sessions/${basename(path)}`
    : below.split(sep).join("/")
}

function put(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
  console.log(`wrote ${path}`)
}

function addToList(): void {
  const path = `${AGENTS_FOLDER}/records.ts`
  const list = readFileSync(join(root, path), "utf8")
  const end = list.lastIndexOf("\n/** All agents of this package.")
  const names = list.slice(end).replace("vscode, copilot", `vscode, copilot, ${variableOf({ name })}`)
  put(path, `${list.slice(0, end)}\n${agentRecord(agent)}${names}`)
}

function makeGolden(): void {
  const run = (command: string[], env = {}) =>
    spawnSync(process.execPath, command, { cwd: root, stdio: "inherit", env: { ...process.env, ...env } })
  run([join(root, "node_modules", "@biomejs", "biome", "bin", "biome"), "check", "--write", AGENTS_FOLDER])
  run([join(root, "node_modules", "vitest", "vitest.mjs"), "run", "--project", "test", `test/agents/${name}.test.ts`], {
    DEX_ACCEPT_GOLDEN: "1",
  })
}

function stop(why: string): never {
  console.error(why)
  process.exit(2)
}
