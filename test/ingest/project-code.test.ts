import { execFileSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { openParser } from "../../src/code/parse.ts"
import { syncProjectCode, updateCodeFile } from "../../src/ingest/project-code.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { tempDir } from "../support/temp.ts"
import { type Files, openProject, write } from "./code-project.ts"

/** Also changes a file within the same millisecond and to the same size: the time must differ. */
function edit(project: string, path: string, text: string): void {
  writeFileSync(join(project, path), text)
  const later = new Date(Date.now() + 5_000)
  utimesSync(join(project, path), later, later)
}

const SMALL = {
  "src/store.ts": "/** Saves it. */\nexport function save(a: number) {}\nexport class Row { put() {} }\n",
  "src/main.ts": 'import { save as keep, Row } from "./store.ts"\nexport function run() { keep(1); new Row().put() }\n',
  "src/other.ts": "export function alone() { save(2) }\n",
}

test("finds definitions, users and importers of a project, and how certain each use is", async () => {
  const { at, knowledge, project, users, sync } = openProject(SMALL)
  expect(await sync()).toEqual({ files: 3, read: 3, removed: 0, skipped: {}, not_listed: 0 })
  expect(knowledge.symbols.definitionsIn(project, "src/store.ts").map(({ name, doc }) => [name, doc])).toEqual([
    ["save", "Saves it."],
    ["Row", undefined],
    ["put", undefined],
  ])
  expect(knowledge.symbols.definitionAt(project, "src/store.ts", 3)).toMatchObject({ name: "put", container: "Row" })
  expect(users("save")).toEqual(["src/main.ts:2 run call resolved", "src/other.ts:1 alone call by_name"])
  expect(users("put")).toEqual(["src/main.ts:2 run call by_name"])
  expect(knowledge.symbols.importersOf(project, "src/store.ts", 10)).toEqual([{ path: "src/main.ts", line: 1 }])
  expect(knowledge.symbols.importsIn(project, "src/main.ts")).toEqual([{ target: "src/store.ts", line: 1 }])
  expect(knowledge.code.codeCounts(at.project)).toMatchObject({ files: 3, lines: 6, skipped: {} })
})

test("resolves a use through files that re-export a name, also under another name", async () => {
  const { knowledge, project, users, sync } = openProject({
    "lib/deep.ts": "/** @deprecated use better */\nexport function old() {}\nexport default function made() {}\n",
    "lib/index.ts": 'export { old as older } from "./deep.ts"\nexport * from "./more.ts"\n',
    "lib/more.ts": "export function extra() {}\n",
    "use.ts":
      'import { older, extra } from "./lib/index.ts"\nimport make from "./lib/deep.ts"\nolder()\nextra()\nmake()\n',
    "py/pkg/__init__.py": "from .inner import helper\n",
    "py/pkg/inner.py": "def helper(): pass\n",
    "py/use.py": "from pkg import helper\nhelper()\n",
  })
  await sync()
  expect(users("old")).toEqual(["use.ts:3  call resolved"])
  expect(users("extra")).toEqual(["use.ts:4  call resolved"])
  expect(users("made")).toEqual(["use.ts:5  call resolved"])
  expect(users("helper")).toEqual(["py/use.py:2  call resolved"])
  expect(knowledge.symbols.deprecatedUsedIn(project, "use.ts")).toEqual([
    { symbol: expect.objectContaining({ name: "old", path: "lib/deep.ts", deprecated: "use better" }), line: 3 },
  ])
})

test("Go: the module's packages, and the package's own files", async () => {
  const { knowledge, project, users, sync } = openProject({
    "go.mod": "module example.com/app\n",
    "store/row.go": "package store\n// Deprecated: use Load.\nfunc Read() {}\nfunc clean() {}\n",
    "store/more.go": "package store\nfunc All() { clean() }\n",
    "other/x.go": "package other\nfunc Y() { clean() }\n",
    "main.go": 'package main\nimport "example.com/app/store"\nfunc main() { store.Read() }\n',
  })
  await sync()
  expect(users("Read")).toEqual(["main.go:3 main call resolved"])
  expect(users("clean")).toEqual(["store/more.go:2 All call resolved", "other/x.go:2 Y call by_name"])
  expect(knowledge.symbols.importersOf(project, "store/row.go", 10)).toEqual([{ path: "main.go", line: 2 }])
  expect(knowledge.symbols.deprecatedUsedIn(project, "main.go").map(({ symbol }) => symbol.deprecated)).toEqual([
    "use Load.",
  ])
})

test("what a definition calls: each symbol once, by import, in the same file, and by a name that is unique", async () => {
  const { knowledge, project, sync } = openProject({
    "lib/net.ts": "export function get() {}\nexport function log() {}\n",
    "lib/a.ts": "export class A {\n  twice() {}\n  once() {}\n}\n",
    "lib/b.ts": "export class B {\n  twice() {}\n}\n",
    "use.ts": [
      'import { get as fetchIt, log } from "./lib/net.ts"',
      "function helper() {}",
      "export function run(x) {",
      "  helper()",
      "  fetchIt()",
      "  fetchIt()",
      "  x.once()",
      "  x.twice()",
      "  console.log(parseInt(x))",
      "}",
      "log()",
    ].join("\n"),
  })
  await sync()
  const [run] = knowledge.symbols.definitionsNamed(project, "run", 1)
  const calls = knowledge.symbols.callsIn(project, run!)
  expect(calls.map(({ symbol, line, resolution }) => `${symbol.path} ${symbol.name} ${line} ${resolution}`)).toEqual([
    "use.ts helper 4 resolved",
    "lib/net.ts get 5 resolved",
    "lib/a.ts once 7 by_name",
  ])
})

describe("reads only what changed", () => {
  test("nothing new, touched without a change, edited, deleted, renamed", async () => {
    const { project, names, users, sync } = openProject(SMALL)
    await sync()
    expect(await sync()).toMatchObject({ read: 0, removed: 0 })

    edit(project, "src/store.ts", SMALL["src/store.ts"])
    expect(await sync()).toMatchObject({ read: 0, removed: 0 })

    edit(project, "src/store.ts", "export function save() {}\nexport function load() {}\n")
    expect(await sync()).toMatchObject({ read: 1, removed: 0 })
    expect(names("src/store.ts")).toEqual(["save", "load"])

    renameSync(join(project, "src/store.ts"), join(project, "src/kept.ts"))
    expect(await sync()).toMatchObject({ read: 1, removed: 1 })
    // Nobody imports the new file: main.ts now imports from a file that does not exist.
    expect(users("save")).toEqual(["src/other.ts:1 alone call by_name"])
    renameSync(join(project, "src/kept.ts"), join(project, "src/store.ts"))
    await sync()
    expect(users("save")).toEqual(["src/main.ts:2 run call resolved", "src/other.ts:1 alone call by_name"])

    rmSync(join(project, "src/main.ts"))
    expect(await sync()).toMatchObject({ read: 0, removed: 1 })
    expect(names("src/main.ts")).toEqual([])
    expect(users("save")).toEqual(["src/other.ts:1 alone call by_name"])
  })

  test("updates one file at a time, with a parser that stays open", async () => {
    const { at, project, names, users, sync } = openProject(SMALL)
    await sync()
    const parser = await openParser()
    onTestFinished(() => parser.close())
    expect(await updateCodeFile(at, "src/store.ts", parser)).toBe("same")
    edit(project, "src/store.ts", "export function load() {}\n")
    expect(await updateCodeFile(at, join(project, "src/store.ts"), parser)).toBe("read")
    expect(names("src/store.ts")).toEqual(["load"])
    rmSync(join(project, "src/store.ts"))
    expect(await updateCodeFile(at, "src/store.ts", parser)).toBe("removed")
    expect(names("src/store.ts")).toEqual([])
    write(project, { "src/store.ts": SMALL["src/store.ts"] })
    expect(await updateCodeFile(at, "src/store.ts")).toBe("read")
    expect(users("save")).toContain("src/main.ts:2 run call resolved")
    expect(await updateCodeFile(at, "../elsewhere.ts", parser)).toBe("same")
    expect(await updateCodeFile(at, "notes.txt", parser)).toBe("same")
  })
})

test("skipped files are counted by reason", async () => {
  const { knowledge, project, names, sync } = openProject({
    "ok.ts": "export const ok = 1\n",
    "huge.ts": `${"const a = 1\n".repeat(90_000)}`,
    "min.js": `var a=${"1+".repeat(3_000)}1\n`,
    "gen.go": "// Code generated by protoc. DO NOT EDIT.\npackage a\nfunc A() {}\n",
    "bin.py": Buffer.from([0x61, 0x00, 0x62]),
    "latin.py": Buffer.concat([Buffer.from("# "), Buffer.from([0xe9, 0xff]), Buffer.from("\ndef kept(): pass\n")]),
    "node_modules/x/index.js": "function hidden() {}\n",
    ".hidden/x.ts": "const hidden = 1\n",
    "vendor/y.go": "package y\n",
  })
  expect(await sync()).toEqual({
    files: 6,
    read: 2,
    removed: 0,
    skipped: { huge: 1, minified: 1, generated: 1, binary: 1 },
    not_listed: 0,
  })
  expect(names("latin.py")).toEqual(["kept"])
  expect(knowledge.code.codeCounts(project).skipped).toEqual({ huge: 1, minified: 1, generated: 1, binary: 1 })
  // Already known as skipped, so not read again.
  expect(await sync()).toMatchObject({ read: 0, skipped: {} })
})

test("with git, ignored files are not read, but untracked ones are", async () => {
  const { project, names, sync } = openProject({
    "a.ts": "export const a = 1\n",
    "new.ts": "export const fresh = 1\n",
    "made/b.ts": "export const b = 1\n",
    ".gitignore": "made/\n",
  })
  execFileSync("git", ["init", "-q"], { cwd: project })
  execFileSync("git", ["add", "a.ts"], { cwd: project })
  expect(await sync()).toMatchObject({ files: 2, read: 2 })
  expect(names("new.ts")).toEqual(["fresh"])
})

test("a tracked folder that is now a file hides nothing else", async () => {
  const { project, names, sync } = openProject({ "a.ts": "export const a = 1\n", "lib/b.ts": "export const b = 1\n" })
  execFileSync("git", ["init", "-q"], { cwd: project })
  execFileSync("git", ["add", "."], { cwd: project })
  rmSync(join(project, "lib"), { recursive: true })
  writeFileSync(join(project, "lib"), "")
  expect(await sync()).toMatchObject({ files: 1, read: 1 })
  expect(names("a.ts")).toEqual(["a"])
})

test("no link leads out of the project, and beyond the limit files are counted", async () => {
  const { at, project, names, sync } = openProject({ "a.ts": "const a = 1\n", "b.ts": "const b = 1\n" })
  const outside = tempDir()
  write(outside, { "secret.ts": "export const secret = 1\n" })
  symlinkSync(join(outside, "secret.ts"), join(project, "link.ts"))
  symlinkSync(outside, join(project, "folder"))
  expect(await sync()).toMatchObject({ files: 2, read: 2 })
  expect(await updateCodeFile(at, "link.ts")).toBe("same")
  expect(await updateCodeFile(at, "folder/secret.ts")).toBe("skipped")
  expect(names("folder/secret.ts")).toEqual([])
  expect(await syncProjectCode(at, { limit: 1 })).toMatchObject({ files: 1, not_listed: 1 })
})

test("a secret in a comment is redacted before it is stored", async () => {
  const token = `ghp_${"a1B2c3D4e5F6".repeat(3)}`
  const { knowledge, project, sync } = openProject({ "a.ts": `/** Uses ${token} to log in. */\nexport const a = 1\n` })
  await sync()
  expect(knowledge.symbols.definitionsIn(project, "a.ts")[0]!.doc).toMatch(/^Uses \[REDACTED:.*\] to log in\.$/)
})

/** Enough code for a subprocess with several batches. */
function much(): Files {
  const words = "// Words that cost little to read, and count as bytes all the same.\n".repeat(1_100)
  const body = "export function f() { g() }\n"
  return Object.fromEntries(Array.from({ length: 70 }, (_, i) => [`src/m${i}.ts`, `${words}${body}// ${i}\n`]))
}

/** The running child processes of this process. Linux only. */
function children(): number[] {
  return readdirSync("/proc/self/task").flatMap((thread) =>
    readFileSync(`/proc/self/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  )
}

test("much code, and code that must not be optimised, is read in a subprocess with the same result", async () => {
  const { knowledge, project, names, sync } = openProject({
    ...much(),
    "run.sh": "go() { :; }\n",
    "a.c": "int one(void) {}\n",
  })
  expect(await sync()).toMatchObject({ files: 72, read: 72, skipped: {} })
  expect(names("src/m69.ts")).toEqual(["f"])
  expect([names("run.sh"), names("a.c")]).toEqual([["go"], ["one"]])
  expect(knowledge.code.codeCounts(project)).toMatchObject({ definitions: 72, uses: 70 })
})

test.skipIf(!existsSync("/proc/self/task"))(
  "a process that is killed while it reads code loses nothing, and a stopped one leaves no process running",
  async () => {
    const before = children()
    const ours = () => children().filter((pid) => !before.includes(pid))
    const { at, project, names } = openProject(much())
    let killed = 0
    const onProgress = () => {
      if (killed === 0) for (const pid of ours()) killed += process.kill(pid, "SIGKILL") ? 1 : 0
    }
    expect(await syncProjectCode(at, { onProgress })).toMatchObject({ files: 70, read: 70, skipped: {} })
    expect(killed).toBe(1)
    expect(names("src/m69.ts")).toEqual(["f"])
    expect(ours()).toEqual([])
    write(project, Object.fromEntries(Object.entries(much()).map(([path, text]) => [path, `${text}// again\n`])))
    const stop = new AbortController()
    const stopped = syncProjectCode(at, { signal: stop.signal, onProgress: () => stop.abort() })
    await expect(stopped).rejects.toThrow()
    await new Promise((resolve) => setImmediate(resolve))
    expect(ours()).toEqual([])
  },
)

/** The knowledge of another database that reads the project for the first time now. */
async function readAnew(project: string) {
  const knowledge = openKnowledge(join(tempDir(), "anew.db"))
  onTestFinished(() => void knowledge.close())
  await syncProjectCode({ knowledge, project })
  return knowledge
}

describe("reading in steps gives the same as reading at once", () => {
  test("a file that was moved, but not yet in git, is found at its new path", async () => {
    const { knowledge, project, sync } = openProject({
      "a.ts": 'import { f } from "./b"\nf()\n',
      "b.ts": "export function f() {}\n",
    })
    const git = (...args: string[]) =>
      execFileSync("git", ["-C", project, "-c", "user.name=A", "-c", "user.email=a@example.org", ...args])
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "x")
    await sync()
    mkdirSync(join(project, "b"))
    renameSync(join(project, "b.ts"), join(project, "b/index.ts"))
    expect(await sync()).toMatchObject({ files: 2, removed: 1, skipped: {} })
    for (const known of [knowledge, await readAnew(project)]) {
      expect(known.symbols.importersOf(project, "b/index.ts", 5)).toEqual([{ path: "a.ts", line: 1 }])
      expect(known.symbols.importersOf(project, "b.ts", 5)).toEqual([])
    }
  })

  test("a sync that was stopped after it stored new files is completed by the next one", async () => {
    const many = (text: string) => Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`m/${i}.ts`, text]))
    const { at, knowledge, project, sync } = openProject({
      "a.ts": 'import { f } from "./b"\nf()\n',
      ...many("export const x = 1\n"),
    })
    await sync()
    write(project, { "b.ts": "export function f() {}\n", ...many("export const other = 22\n") })
    const stop = new AbortController()
    await expect(syncProjectCode(at, { signal: stop.signal, onProgress: () => stop.abort() })).rejects.toThrow()
    expect(knowledge.symbols.definitionsNamed(project, "f", 1)).toHaveLength(1)
    await sync()
    for (const known of [knowledge, await readAnew(project)])
      expect(known.symbols.importersOf(project, "b.ts", 5)).toEqual([{ path: "a.ts", line: 1 }])
  })

  test.each(["a whole reading", "one file"])(
    "a go.mod that comes or changes later links what it names, by %s",
    async (by) => {
      const { at, knowledge, project, sync } = openProject({
        "main.go": 'package main\nimport "x.org/p/util"\nfunc main() { util.F() }\n',
        "util/u.go": "package util\nfunc F() {}\n",
      })
      const read = () => (by === "one file" ? updateCodeFile(at, "go.mod") : sync())
      await sync()
      const linked = [{ path: "main.go", line: 2 }]
      for (const [text, importers] of [
        ["module x.org/p\n", linked],
        ["module x.org/q\n", []],
        ["module x.org/p\n\ngo 1.19\n", linked],
      ] as const) {
        write(project, { "go.mod": text })
        await read()
        for (const known of [knowledge, await readAnew(project)])
          expect(known.symbols.importersOf(project, "util/u.go", 5)).toEqual(importers)
      }
      rmSync(join(project, "go.mod"))
      await read()
      expect(knowledge.symbols.importersOf(project, "util/u.go", 5)).toEqual([])
    },
  )
})
