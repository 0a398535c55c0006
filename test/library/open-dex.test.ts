import { execFileSync, spawnSync } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { tempDir } from "../support/temp.ts"

const ROOT = join(import.meta.dirname, "../..")
const PAGE = readFileSync(join(ROOT, "docs", "library.md"), "utf8")
const [usage, testing] = [...PAGE.matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code!)

/** Somebody else's package, with dexctx installed. */
function somePackage(): { dir: string; home: string } {
  const dir = tempDir()
  mkdirSync(join(dir, "node_modules"))
  symlinkSync(ROOT, join(dir, "node_modules", "dexctx"), "junction")
  symlinkSync(join(ROOT, "node_modules", "@types"), join(dir, "node_modules", "@types"), "junction")
  writeFileSync(join(dir, "package.json"), JSON.stringify({ name: "somebody", private: true, type: "module" }))
  const home = join(dir, "home")
  mkdirSync(join(home, ".claude", "projects", "-code-api"), { recursive: true })
  const entry = {
    type: "user",
    uuid: "00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa",
    parentUuid: null,
    sessionId: "11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa",
    timestamp: "2026-09-21T14:13:20.000Z",
    cwd: "/code/api",
    version: "2.1.197",
    message: { role: "user", content: "the zebrafinch test fails" },
  }
  writeFileSync(join(home, ".claude/projects/-code-api", `${entry.sessionId}.jsonl`), `${JSON.stringify(entry)}\n`)
  return { dir, home }
}

function run(dir: string, home: string, file: string): string {
  const env = { PATH: process.env.PATH!, HOME: home, USERPROFILE: home }
  return execFileSync(process.execPath, [file], { cwd: dir, env, encoding: "utf8" })
}

test("the documentation page's code works in a separate package", () => {
  const { dir, home } = somePackage()
  writeFileSync(join(dir, "program.mjs"), usage!)
  const printed = run(dir, home, "program.mjs").trim().split("\n")
  expect(printed[0]).toContain("claude_code:11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa The zebrafinch test fails")
  expect(printed.slice(1, 3)).toEqual(["1", "0"])
  expect(printed.at(3)).toMatch(/^\d+ \S/)
  expect(printed.at(-1)).toBe("0 1")
})

test("the documentation page's code tests a user's own agent", () => {
  const { dir, home } = somePackage()
  cpSync(join(import.meta.dirname, "outside-agent", "agent.mjs"), join(dir, "notebook.mjs"))
  cpSync(join(import.meta.dirname, "outside-agent", "fixtures"), join(dir, "fixtures"), { recursive: true })
  writeFileSync(join(dir, "notebook.test.mjs"), testing!)
  expect(run(dir, home, "notebook.test.mjs")).toMatch(/(pass|# pass) 9\b/)
})

test("an invalid input is reported with its name", async () => {
  const { openDex } = await import("../../src/library/index.ts")
  const dex = openDex({ home: tempDir() })
  await expect(dex.search({ query: 7 })).rejects.toMatchObject({ code: "bad_input", message: /query/ })
  await expect(dex.list({ source: "nobody" })).rejects.toMatchObject({ code: "bad_input" })
  dex.close()
})

test("its type declarations accept what it supports, and reject what it does not", () => {
  const { dir } = somePackage()
  const config = {
    compilerOptions: {
      strict: true,
      module: "nodenext",
      target: "es2024",
      lib: ["es2024"],
      noEmit: true,
      types: ["node"],
    },
  }
  writeFileSync(join(dir, "tsconfig.json"), JSON.stringify({ ...config, include: ["*.ts"] }))
  writeFileSync(
    join(dir, "right.ts"),
    `import { type Dex, openDex } from "dexctx"
import type { OutsideAgent } from "dexctx/agent"
import { contractOf } from "dexctx/testing"
const dex: Dex = openDex({ cwd: "/code" })
const { results } = await dex.search({ query: "x", by: "message" })
const first: string | undefined = results[0]?.snippet
export const why: string[] = (await dex.why({ target: "HEAD" })).notes
export const checks = async (agent: OutsideAgent) => contractOf(await agent.connector(), "fixtures").map(({ name }) => name)
export { first }
`,
  )
  writeFileSync(join(dir, "page.ts"), usage!)
  const wrong = [
    "dex.search({ words: 1 })",
    "dex.search({ query: 1 })",
    "dex.nothing()",
    "dex.why({})",
    "dex.stats({ all: true })",
    "(await dex.list()).results",
  ]
  for (const [i, call] of wrong.entries())
    writeFileSync(
      join(dir, `wrong${i}.ts`),
      `import { openDex } from "dexctx"\nconst dex = openDex()\nexport default await ${call}\n`,
    )
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc")
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", dir], { encoding: "utf8", cwd: dir })
  const refused = stdout
    .trim()
    .split("\n")
    .filter((line) => !line.startsWith(" "))
  expect(refused).toEqual(wrong.map((_, i) => expect.stringMatching(new RegExp(`^wrong${i}\\.ts\\(3,\\d+\\): error`))))
})
