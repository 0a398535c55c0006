import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readFileSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { describe, expect, onTestFinished, test } from "vitest"
import { DEX } from "../../test/support/dex.ts"
import { claudeSession } from "../../test/support/home.ts"
import { tempDir } from "../../test/support/temp.ts"
import { hasPostgres, newDatabase, run } from "./support/postgres.ts"

// Follows docs/hub.md word by word: a shell runs its blocks, with a terminal where one asks questions. Only the machine's
// addresses, passwords and folders are different.

const ROOT = join(import.meta.dirname, "../..")
const PAGE = readFileSync(join(ROOT, "docs/hub.md"), "utf8")
const ID = "1f3c1111-1111-4222-8333-444444444444"
const FIVE_MINUTES = 300_000

/** The block of the page that contains this line. */
function blockWith(line: string): string {
  const found = [...PAGE.matchAll(/^```\n([\s\S]*?)^```$/gm)].map(([, block]) => block!)
  const [block, ...more] = found.filter((one) => one.split("\n").some((each) => each.startsWith(line)))
  if (block === undefined || more.length > 0) throw new Error(`docs/hub.md has not one block with: ${line}`)
  return block
}

function replaced(block: string, other: Record<string, string>): string {
  return Object.entries(other).reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`docs/hub.md no longer says ${from}`)
    return text.replaceAll(from, to)
  }, block)
}

/** Types these answers when their questions are on the screen. */
async function onTerminal(home: string, path: string, block: string, answers: [RegExp, string][] = [], columns = 200) {
  const env = { PATH: path, HOME: home, TZ: "UTC", NO_COLOR: "1", PAGER: "cat", TERM: "xterm", COLUMNS: `${columns}` }
  const child = spawn(
    "script",
    ["-qefc", `stty cols ${columns} rows 50; bash -ec '${block.replaceAll("'", "'\\''")}'`, "/dev/null"],
    { cwd: home, env },
  )
  onTestFinished(() => void child.kill("SIGKILL"))
  const waiting = [...answers]
  let screen = ""
  let seen = 0
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    screen += text
    if (!waiting[0]?.[0].test(screen.slice(seen))) return
    seen = screen.length
    child.stdin.write(`${waiting.shift()![1]}\r`)
  })
  const [code] = (await once(child, "close")) as [number]
  if (code !== 0) throw new Error(`The block ended with ${code}:\n${block}\n${screen}`)
  expect(waiting).toEqual([])
  return screen
}

describe.skipIf(!hasPostgres || process.platform !== "linux")("docs/hub.md", () => {
  test("leads from an empty PostgreSQL to a second person's first search of the team's history", async () => {
    const began = Date.now()
    const bin = tempDir()
    const path = `${bin}:${process.env.PATH}`
    symlinkSync(process.execPath, join(bin, "node"))
    symlinkSync(DEX, join(bin, "dex"))
    const install = replaced(blockWith("npm ci && npm run build --workspace hub"), {
      "npm ci && ": "", // the packages are installed
      "sudo ": "",
      "/usr/local/bin/": `${bin}/`,
    })
    execFileSync("bash", ["-ec", install], { cwd: ROOT, env: { ...process.env, PATH: path }, stdio: "ignore" })

    const { owner, app, index, admin } = await newDatabase({ migrated: false })
    const name = `${new URL(owner.replace("@/", "@localhost/")).pathname.slice(1)}_first`
    const named = (url: string) => url.replace(name.replace("_first", ""), name)
    onTestFinished(async () => void (await run(owner, `drop database if exists ${name} with (force)`)))
    const operator = tempDir()
    const setUp = replaced(blockWith("createdb hub"), {
      "createdb hub": `createdb --maintenance-db='${owner}' ${name}`,
      "postgresql://postgres:…@127.0.0.1/hub": `'${named(owner)}'`,
      "PASSWORD=…": "PASSWORD=test",
    })
    const serve = replaced(blockWith("dex-hub serve"), {
      "postgresql://dex_hub_app:…@127.0.0.1/hub": `'${named(app)}'`,
      "postgresql://dex_hub_index:…@127.0.0.1/hub": `'${named(index)}'`,
      "postgresql://dex_hub_admin:…@127.0.0.1/hub": `'${named(admin)}'`,
      "/var/lib/dex-hub": tempDir(),
      "dex-hub serve": "exec dex-hub serve",
    })
    const operatorEnv = { PATH: path, HOME: operator, DEX_HUB_PORT: "0" }
    const hub = spawn("bash", ["-ec", setUp + serve], {
      cwd: operator,
      env: operatorEnv,
      stdio: ["ignore", "pipe", "inherit"],
    })
    onTestFinished(() => void hub.kill("SIGKILL"))
    const printed: string[] = []
    const address = await new Promise<string>((resolve, reject) => {
      hub.once("exit", (code) => reject(new Error(`The operator's blocks ended with ${code}: ${printed.join("\n")}`)))
      createInterface({ input: hub.stdout }).on("line", (line) => {
        printed.push(line)
        const port = /"event":"listening".*"port":(\d+)/.exec(line)?.[1]
        if (port) resolve(`http://127.0.0.1:${port}`)
      })
    })
    const [first] = printed.filter((line) => line.startsWith("dexc_")) as [string]
    const administer = replaced(blockWith("dex hub admin login"), { "https://hub.example.com": address })
    const added = await onTerminal(operator, path, administer, [[/Your one-time code/, first]])
    const codeIn = (screen: string) => /dexi_\S+/.exec(screen)![0]

    const [ann, bob] = [tempDir(), tempDir()]
    const project = join(ann, "code/api")
    mkdirSync(project, { recursive: true })
    execFileSync("git", ["init", "-q", project])
    execFileSync("git", ["-C", project, "remote", "add", "origin", "git@github.com:acme/api.git"])
    const turns = Array.from({ length: 7 }, (_, i) => ({ user: `and then ${i}`, assistant: `Step ${i} is done.` }))
    turns[0] = { user: "why does the refresh token race", assistant: "The mutex is released too early." }
    claudeSession(ann, { id: ID, cwd: project, start: "2026-10-02T10:00:00Z", turns })
    execFileSync("bash", ["-ec", "dex sync"], { env: { PATH: path, HOME: ann }, stdio: "ignore" })
    const logIn = replaced(blockWith("dex hub login"), { "https://hub.example.com": address })
    const shared = await onTerminal(ann, path, logIn, [
      [/Your token for the hub/, codeIn(added)],
      [/Share this project, including what is added to it later\?/, "y"],
    ])
    expect(shared).toContain("The mutex is released too early.") // the preview
    expect(shared).toContain("github.com/acme/api")

    const bobs = codeIn(await onTerminal(ann, path, blockWith("dex hub admin member add")))
    const narrow = await onTerminal(bob, path, logIn.split("\n")[0]!, [[/Your token for the hub/, bobs]], 80)
    const [notice] = /You have access to [\s\S]+?inside\s+it\./.exec(narrow)!
    expect(notice.split("\r\n").map((line) => line.length > 80)).toEqual([false, false])
    await onTerminal(ann, path, blockWith("dex hub admin grant"))
    const search = replaced(blockWith("dex search"), { "…": "" })
    await expect
      .poll(() => onTerminal(bob, path, search.split("\n")[0]!).catch(() => ""))
      .toContain("refresh token race")
    const tookMs = Date.now() - began
    const all = await onTerminal(bob, path, search)
    expect(all).toContain(`ann/claude_code:${ID}`)
    expect(all).toContain("The mutex is released too early.")
    console.log(`From an empty PostgreSQL to a second person's first team search: ${(tookMs / 1000).toFixed(1)} s`)
    expect(tookMs).toBeLessThan(FIVE_MINUTES)
  })
})
