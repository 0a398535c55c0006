import { execFileSync, spawnSync } from "node:child_process"
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, test } from "vitest"
import { onTerminal } from "../integrations/terminal.ts"
import { DEX, dex } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { childrenOf, isAlive } from "../support/processes.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"
import { line, SESSION, session } from "./growing-session.ts"
import { type RunningWatch, startWatch } from "./watching.ts"

function repository(home: string, name: string): string {
  const folder = join(home, "code", name)
  mkdirSync(folder, { recursive: true })
  execFileSync("git", ["init", "-q", "-b", "main", folder])
  return folder
}

/** With a message that has just arrived: everything is closed, no process is left. */
async function endsBy(signal: "SIGINT" | "SIGTERM" | "SIGHUP", watch: RunningWatch, file: string): Promise<void> {
  const children = childrenOf(watch.child.pid!)
  appendFileSync(file, line("just before the end"))
  watch.child.kill(signal)
  expect(await watch.exited).toEqual({ code: 0, signal: null })
  expect(watch.all("stopped").length).toBe(1)
  expect(children.length).toBeGreaterThan(0)
  expect(children.filter(isAlive)).toEqual([])
  expect(watch.stderr()).not.toMatch(/error|assert|fatal/i)
}

test("a message is found by another process soon after it was written, and SIGINT ends it", async () => {
  const home = tempDir()
  smallHome(home)
  const file = session(home)
  const watch = await startWatch(home)
  expect(watch.all("looked")[0]!.messages).toBeGreaterThan(5)
  appendFileSync(file, line("a quokka on the roof"))
  expect(await watch.next("looked")).toMatchObject({ source: "claude_code", messages: 1, conversations: 1 })
  const found = await warmDex(home, ["search", "quokka", "--json"])
  expect(JSON.parse(found.stdout).total).toBe(1)
  await endsBy("SIGINT", watch, file)
})

test("an agent whose folder appears later is seen, and a session in a new project of it; SIGHUP ends it", async () => {
  const home = tempDir()
  const watch = await startWatch(home)
  expect(watch.all("looked")[0]!.messages).toBe(0)
  smallHome(home)
  const seen = async (least: number) => {
    let sum = 0
    while (sum < least) sum += (await watch.next("looked")).messages
    return sum
  }
  expect(await seen(11)).toBeGreaterThanOrEqual(11)
  const start = "2026-11-12T09:00:00Z"
  const file = claudeSession(home, { id: SESSION, cwd: "/new/project", start, turns: [{ user: "hello" }] })
  expect((await watch.next("looked", ({ messages }) => messages > 0)).messages).toBe(1)
  await endsBy("SIGHUP", watch, file)
})

test("its own files never wake it, even inside a project that is watched", async () => {
  const home = tempDir()
  const project = repository(home, "app")
  const env = { DEX_HOME: join(project, "memory") }
  const file = session(home)
  const watch = await startWatch(home, { cwd: project, env })
  await watch.next("project")
  await warmDex(home, ["search", "message"], env)
  await warmDex(home, ["list"], env)
  expect(existsSync(join(project, "memory", "traces"))).toBe(true)
  appendFileSync(file, line("one more"))
  await watch.next("looked", ({ messages }) => messages === 1)
  writeFileSync(join(project, "main.ts"), "")
  expect(await watch.next("project")).toMatchObject({ project, files: 1, git: false })
  expect(watch.all("project").length).toBe(2)
  expect(watch.all("looked").length).toBe(2)
})

test("a project reports its files and commits, but not what git ignores or programs generate", async () => {
  const home = tempDir()
  const project = repository(home, "app")
  for (const folder of ["src", "node_modules/lib", "made", "dist"])
    mkdirSync(join(project, folder), { recursive: true })
  writeFileSync(join(project, ".gitignore"), "made/\n")
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: project })
  git("add", ".")
  git("commit", "-qm", "first")
  writeFileSync(join(project, "made", "x"), "")
  const watch = await startWatch(home, { cwd: project })
  expect(await watch.next("project")).toMatchObject({ project, git: true })
  for (const ignored of ["node_modules/lib/index.js", "made/out.js"]) writeFileSync(join(project, ignored), "")
  mkdirSync(join(project, "src", "new", "deep"), { recursive: true })
  writeFileSync(join(project, "src", "new", "deep", "file.ts"), "")
  expect(await watch.next("project")).toMatchObject({ files: 1, git: false })
  // Not ignored by this repository, so somebody may work in it.
  writeFileSync(join(project, "dist", "kept.js"), "")
  expect(await watch.next("project")).toMatchObject({ files: 1, git: false })
  git("add", "src")
  git("commit", "-qm", "second")
  expect(await watch.next("project")).toMatchObject({ files: 0, git: true })
})

test("files that git ignores by their name wake nobody and are not reported, until git no longer ignores them", async () => {
  const home = tempDir()
  const project = repository(home, "app")
  const at = (name: string) => join(project, name)
  writeFileSync(at(".gitignore"), "*.log\n.env\nlater/\n")
  writeFileSync(at("kept.log"), "")
  execFileSync("git", ["-C", project, "add", "-f", "kept.log", ".gitignore"])
  const file = session(home)
  const watch = await startWatch(home, { cwd: project })
  await watch.next("project")
  for (let i = 0; i < 3; i++) {
    for (const name of ["app.log", ".env", ":(odd) \u00e9.log"]) appendFileSync(at(name), "x")
    mkdirSync(at(`later/${i}`), { recursive: true })
    writeFileSync(at(`later/${i}/made.js`), "")
    // What was read after them was read without them.
    appendFileSync(file, line("meanwhile"))
    await watch.next("looked", ({ messages }) => messages === 1)
  }
  expect(watch.all("project").length).toBe(1)
  appendFileSync(at("app.log"), "x")
  writeFileSync(at("main.ts"), "")
  expect(await watch.next("project")).toMatchObject({ files: 1, git: false })
  // Git tracks this one, whatever its name.
  appendFileSync(at("kept.log"), "x")
  expect(await watch.next("project")).toMatchObject({ files: 1 })
  writeFileSync(at(".gitignore"), ".env\n")
  expect(await watch.next("project")).toMatchObject({ files: 1 })
  appendFileSync(at("app.log"), "x")
  expect(await watch.next("project")).toMatchObject({ files: 1 })
  expect(watch.all("problem")).toEqual([])
})

test("a database is watched by its -wal, and reading it is not a change", async () => {
  const home = tempDir()
  // Codex's is opened at every look.
  const folder = join(home, ".codex")
  mkdirSync(folder, { recursive: true })
  const db = new DatabaseSync(join(folder, "state_5.sqlite"))
  db.exec("pragma journal_mode = wal; create table note (text)")
  const file = session(home)
  const watch = await startWatch(home)
  const looks = () => watch.all("looked").filter(({ source }) => source === "codex").length
  const before = looks()
  db.exec("insert into note values ('x')")
  await watch.next("looked", ({ source }) => source === "codex")
  for (let second = 0; second < 4; second++) {
    appendFileSync(file, line("meanwhile"))
    await watch.next("looked", ({ source }) => source === "claude_code")
  }
  expect(looks() - before).toBeLessThanOrEqual(2)
  db.close()
})

test("a second one reports that one is running, ends with 0, and its project is watched by the first", async () => {
  const home = tempDir()
  const first = repository(home, "first")
  const second = repository(home, "second")
  const watch = await startWatch(home, { cwd: first })
  const other = await dex(home, ["watch"], {}, DEX, "", second)
  expect(other).toMatchObject({ code: 0, stdout: "" })
  expect(other.stderr).toMatch(new RegExp(`is already running \\(pid ${watch.child.pid}, since`))
  expect((await watch.next("watching")).projects).toEqual([first, second])
  await watch.next("project", ({ project }) => project === second)
  writeFileSync(join(second, "file"), "")
  await watch.next("project", ({ project }) => project === second)
  const removed = await warmDex(home, ["watch", "--off"], {}, second)
  expect(removed).toMatchObject({ code: 0, stdout: "~/code/second is no longer watched.\n" })
  expect((await watch.next("watching")).projects).toEqual([first])
})

test("status says whether one is running, and what it read, until SIGTERM ends it", async () => {
  const home = tempDir()
  const file = session(home)
  expect(await warmDex(home, ["watch", "--status"])).toMatchObject({ code: 1, stdout: "" })
  const watch = await startWatch(home)
  const status = JSON.parse((await warmDex(home, ["watch", "--status", "--json"])).stdout)
  expect(status).toMatchObject({
    running: true,
    state: { pid: watch.child.pid, messages: 1, polled: [], projects: [] },
  })
  expect(Date.parse(status.state.last_look)).toBeGreaterThan(Date.parse(status.state.since))
  expect((await warmDex(home, ["watch", "--status"])).stdout).toMatch(/^running since .*\n1 new message, the last at/)
  await endsBy("SIGTERM", watch, file)
  expect(JSON.parse((await warmDex(home, ["watch", "--status", "--json"])).stdout)).toEqual({ running: false })
})

test("kill -9 leaves no lock and no process", async () => {
  const home = tempDir()
  session(home)
  const watch = await startWatch(home)
  const [reader] = childrenOf(watch.child.pid!)
  expect(reader).toBeGreaterThan(0)
  watch.child.kill("SIGKILL")
  await watch.exited
  const again = await startWatch(home)
  expect(again.child.pid).not.toBe(watch.child.pid)
  // It notices the end of its parent; by now it had the time of a complete start.
  expect(isAlive(reader!)).toBe(false)
})

test("if the system cannot watch more folders it says so, and checks every few seconds instead", async () => {
  const limited = ["unshare", "-Ur", "sh", "-c", 'echo 2 > /proc/sys/user/max_inotify_watches && exec "$@"', "sh"]
  const may = spawnSync(limited[0]!, [...limited.slice(1), "true"])
  if (may.status !== 0) return void console.log("NOT RUN: no namespace of one's own can be made here")
  const home = tempDir()
  smallHome(home)
  const file = session(home)
  const watch = await startWatch(home, { before: limited })
  expect(watch.all("problem").map(({ message }) => message)).toContainEqual(
    expect.stringMatching(
      /\.claude\S* cannot be watched: the system's limit is reached.*max_user_watches=.*every 3 seconds/,
    ),
  )
  appendFileSync(file, line("found by looking"))
  expect((await watch.next("looked", ({ messages }) => messages > 0)).messages).toBe(1)
})

test("a look that fails is reported once, and retried when the cause is gone", async () => {
  const home = tempDir()
  const file = session(home)
  const watch = await startWatch(home)
  execFileSync("mv", [join(home, ".dex", "history.db"), join(home, "history.db")])
  mkdirSync(join(home, ".dex", "history.db"))
  appendFileSync(file, line("while it is broken"))
  expect((await watch.next("problem")).message).toMatch(/history\.db/)
  execFileSync("rmdir", [join(home, ".dex", "history.db")])
  execFileSync("mv", [join(home, "history.db"), join(home, ".dex", "history.db")])
  expect((await watch.next("looked", ({ messages }) => messages > 0)).messages).toBe(1)
  expect(watch.all("problem").length).toBe(1)
})

test("on a terminal it is one line", async () => {
  const home = tempDir()
  smallHome(home)
  const run = await onTerminal(home, ["watch"], [[/new messages, the last at/, "\x03"]])
  if (!run) return void console.log("NOT RUN: there is no program that makes a terminal")
  expect(run.code).toBe(0)
  const lines = run.screen.trim().split("\n")
  expect(lines.at(-1)).toContain("Stopped.")
  expect(lines.length).toBeLessThanOrEqual(2)
  expect(run.screen).toMatch(/Watching claude_code · \d+ new messages, the last at \d\d:\d\d:\d\d · Ctrl-C ends/)
})
