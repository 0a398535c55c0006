import { chmodSync, readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { FIRST, fill, ONE, OWN, refTo, SECOND, TWO } from "../support/blame-shop.ts"
import { DEX } from "../support/dex.ts"
import { makeRepository } from "../support/repository.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"

type Author = { label: string; ref: string; conversation: string; commit: string; details: string[] }
const FOLDER = join(import.meta.dirname, "../../editors/vscode")
const { askDex, authorsIn, isCommit, isRef, oneLine } = createRequire(import.meta.url)(join(FOLDER, "lines.js")) as {
  askDex: (program: string, args: string[], cwd: string) => Promise<string>
  authorsIn: (json: string) => Map<number, Author>
  isCommit: (value: unknown) => boolean
  isRef: (value: unknown) => boolean
  oneLine: (text: string) => string
}

describe("with the real dex, in a project that two conversations and a person wrote", () => {
  const home = sharedTempDir()
  const repository = makeRepository(join(home, "shop"))
  const program = join(home, "dex")
  beforeAll(async () => {
    await fill(home, repository)
    writeFileSync(program, `#!/bin/sh\nHOME='${home}' exec '${process.execPath}' '${DEX}' "$@"\n`)
    chmodSync(program, 0o755)
  })
  const file = join(repository.folder, "src/zoo.ts")

  test.skipIf(process.platform === "win32")(
    "every line has the conversation that wrote it, and a person's has none",
    async () => {
      const authors = authorsIn(await askDex(program, ["blame", file, "--json"], repository.folder))
      const expected = [...OWN.map(() => undefined), ...FIRST.map(() => refTo(ONE)), ...SECOND.map(() => refTo(TWO))]
      expect(expected.map((_, i) => authors.get(i + 1)?.conversation)).toEqual(expected)
      const { label, details, ref, commit } = authors.get(OWN.length + 1)!
      expect(label).toBe("Claude Code · Add the quokka table · 2026-01-02")
      expect(details).toEqual([
        "Add the quokka table",
        expect.stringMatching(/^Claude Code · (?:proved|likely): it wrote exactly this line · 2026-01-02$/),
        expect.stringMatching(/^[0-9a-f]{10} zoo: quokkas$/),
      ])
      expect(await askDex(program, ["show", ref], repository.folder)).toContain("quokka")
      expect(await askDex(program, ["why", commit], repository.folder)).toContain("zoo: quokkas")
      expect(await askDex(program, ["why", `${file}:${OWN.length + 1}`], repository.folder)).toContain("quokka")
    },
  )

  test.skipIf(process.platform === "win32")("what dex cannot answer is an error with its own sentence", async () => {
    await expect(askDex(program, ["blame", join(home, "none.ts"), "--json"], home)).rejects.toThrow(
      /none\.ts|repository/,
    )
    await expect(askDex(join(home, "no-dex"), ["--version"], home)).rejects.toThrow(/dex was not found\. Install it/)
    await expect(askDex("dex; touch pwned", ["--version"], tempDir())).rejects.toThrow(/dex was not found/)
  })
})

const LINE = {
  line: 1,
  level: "proved",
  ref: "codex:1#2",
  agent: "codex",
  title: "T",
  date: "2026-01-02T00:00:00Z",
  commit: "",
}
const authorOf = (more: object) => authorsIn(JSON.stringify({ lines: [{ ...LINE, ...more }] })).get(1)

test("a hostile title stays on one line, without invisible characters, and is cut", () => {
  const title = `Fix\u202e it\n\u001b[31m${"x".repeat(100)}\u{e0041}`
  expect(authorOf({ title })!.label).toBe(`codex · Fix it [31m${"x".repeat(48)}… · 2026-01-02`)
  expect(authorOf({ title })!.details[0]).not.toMatch(/[\p{Cc}\p{Cf}\n]/u)
  expect(oneLine("a\u2028b\u0000c")).toBe("a b c")
})

test("fields of other types, unknown levels and refs that could be options are left out", () => {
  for (const more of [
    { level: "__proto__" },
    { level: "unknown" },
    { ref: "--yes" },
    { ref: ["a"] },
    { line: "1" },
    { ref: "a b" },
  ])
    expect(authorOf(more), JSON.stringify(more)).toBeUndefined()
  expect(authorOf({ title: { toString: "x" }, agent: 4, date: null, reason: "constructor" })).toMatchObject({
    label: "a conversation without a title",
    details: ["a conversation without a title", "proved", "not committed yet"],
  })
  for (const json of ["{}", '{"lines":4}', '{"lines":[null,7,"x"]}']) expect(authorsIn(json).size).toBe(0)
  expect(["ann/claude_code:1f3c#12", "cursor:a-b_c.d"].every(isRef)).toBe(true)
  expect(["-x", "", "a\nb", "a;b", "$(x)", "a#b", undefined].some(isRef)).toBe(false)
  expect(["HEAD", "HEAD~2", "origin/main", "1f3c2d"].every(isCommit)).toBe(true)
  expect(["--output=x", "-", "a b", "a;b", "", 4].some(isCommit)).toBe(false)
})

test("the extension needs no package, is off in untrusted folders, and no folder can name its program", () => {
  const manifest = JSON.parse(readFileSync(join(FOLDER, "package.json"), "utf8")) as {
    capabilities: { untrustedWorkspaces: { supported: boolean } }
    contributes: { commands: { command: string }[]; configuration: { properties: Record<string, { scope?: string }> } }
  }
  expect(Object.keys(manifest).filter((field) => /dependencies|scripts/i.test(field))).toEqual([])
  expect(manifest.capabilities.untrustedWorkspaces.supported).toBe(false)
  expect(manifest.contributes.configuration.properties["dexctx.path"]!.scope).toBe("machine")
  const code = readFileSync(join(FOLDER, "extension.js"), "utf8")
  const registered = [...code.matchAll(/registerCommand\("([^"]+)"/g)].map(([, name]) => name)
  expect(registered).toEqual(manifest.contributes.commands.map(({ command }) => command))
  for (const setting of code.matchAll(/setting\("(\w+)"\)/g))
    expect(manifest.contributes.configuration.properties).toHaveProperty([`dexctx.${setting[1]}`])
  expect(code).not.toMatch(/supportHtml|isTrusted = true|shell: true/)
})
