import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { call, putSession, SESSION, writer } from "../support/claude-code.ts"
import { makeRepository } from "../support/repository.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"

const created = (filePath: string, content: string) => ({
  toolUseResult: { type: "create", filePath, content, structuredPatch: [], originalFile: null },
})

/** A conversation that writes files, the first of which another writes over. */
async function home(files: Record<string, string>, cwd?: string): Promise<{ place: string; folder: string }> {
  const place = tempDir()
  const folder = cwd ?? join(place, "shop")
  mkdirSync(folder, { recursive: true })
  const transcript = writer({ cwd: folder })
  transcript.prompt("write it")
  let n = 0
  for (const [name, content] of Object.entries(files)) {
    const file_path = name.startsWith("/") ? name : join(folder, name)
    const id = `c${++n}`
    transcript.answer(`m${n}`, [call(id, "Write", { file_path, content })])
    transcript.result(id, `File created successfully at: ${file_path}`, created(file_path, content))
  }
  putSession(place, transcript.records)
  await syncHome(place)
  return { place, folder }
}

const recoverIn = (place: string, cwd: string, ...words: string[]) => warmDex(place, ["recover", ...words], {}, cwd)

test("a file comes back as it was, beside what is there now, and nothing is replaced", async () => {
  const { place, folder } = await home({ "a.ts": "one\n\ttwo" })
  writeFileSync(join(folder, "a.ts"), "overwritten")
  const first = await recoverIn(place, folder, "a.ts", "--at", SESSION)
  expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining("a.recovered.ts") })
  expect(first.stderr).toContain("Complete: 2 lines")
  expect(readFileSync(join(folder, "a.recovered.ts"), "utf8")).toBe("one\n\ttwo")
  await recoverIn(place, folder, "a.ts", "--at", SESSION)
  expect(readdirSync(folder).sort()).toEqual(["a.recovered-2.ts", "a.recovered.ts", "a.ts"])
  expect(readFileSync(join(folder, "a.ts"), "utf8")).toBe("overwritten")
})

test("a file that exists is replaced only with --yes, and a link is not followed", async () => {
  const { place, folder } = await home({ "a.ts": "one\n" })
  writeFileSync(join(place, "secret"), "mine")
  symlinkSync(join(place, "secret"), join(folder, "link"))
  const asked = await recoverIn(place, folder, "a.ts", "--at", SESSION, "-o", "link")
  expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining("Nothing was written") })
  await recoverIn(place, folder, "a.ts", "--at", SESSION, "-o", "link", "--yes")
  expect(readFileSync(join(folder, "link"), "utf8")).toBe("one\n")
  expect(readFileSync(join(place, "secret"), "utf8")).toBe("mine")
})

test("the message decides which state it is, and the list names the messages", async () => {
  const { place, folder } = await home({})
  const transcript = writer({ cwd: folder })
  const file_path = join(folder, "a.ts")
  transcript.prompt("write it")
  for (const [id, content] of Object.entries({ c1: "first\n", c2: "second\n" })) {
    transcript.answer(`m${id}`, [call(id, "Write", { file_path, content })])
    transcript.result(id, "File created", created(file_path, content))
  }
  putSession(place, transcript.records)
  await syncHome(place)
  const { versions } = JSON.parse((await recoverIn(place, folder, "a.ts", "--json")).stdout)
  expect(versions).toHaveLength(2)
  const textAt = async (ref: string) =>
    JSON.parse((await recoverIn(place, folder, "a.ts", "--at", ref, "--print", "--json")).stdout).text
  expect(await textAt(versions[0].id)).toBe("second\n")
  expect(await textAt(versions[1].id)).toBe("first\n")
  // The message with the call, before its result.
  expect(await textAt(versions[1].id.replace(/\d+$/, (n: string) => String(Number(n) - 1)))).toBe("first\n")
  expect((await recoverIn(place, folder, "b.ts", "--at", SESSION)).stderr).toContain("does not show or change b.ts")
})

test("only what the person names decides where bytes are written", async () => {
  const hostile = ["../../escape.ts", "/tmp/dex-recover-escape.ts", "a\u001b[2Jb.ts", "CON", "a.ts:stream", "..\\up.ts"]
  const { place, folder } = await home(Object.fromEntries([...hostile, "a.ts"].map((name) => [name, `${name}\n`])))
  for (const name of hostile) {
    const out = join(place, "out.txt")
    const { stdout, stderr } = await recoverIn(place, folder, name, "--at", SESSION, "-o", out, "--yes")
    expect(stdout + stderr).not.toContain("\u001b[2J")
    expect(readdirSync(folder)).toEqual([])
    expect(existsSync("/tmp/dex-recover-escape.ts")).toBe(false)
    expect(existsSync(join(place, "..", "escape.ts"))).toBe(false)
  }
})

test("lines that no message shows come from the repository, and a partial file says so in its name", async () => {
  const place = tempDir()
  const { folder, gitAt } = makeRepository(join(place, "shop"))
  const file_path = join(folder, "a.txt")
  const lines = (changed: string) => ["1", "2", "3", "4", changed, "6", "7", "8", "9", ""].join("\n")
  writeFileSync(file_path, lines("5"))
  gitAt("2026-01-01T10:00:00Z", "add", "a.txt")
  gitAt("2026-01-01T10:00:00Z", "commit", "-q", "-m", "first")
  const transcript = writer({ cwd: folder })
  transcript.prompt("change it")
  transcript.answer("m1", [call("c1", "Edit", { file_path, old_string: "5", new_string: "five" })])
  const hunk = { oldStart: 4, oldLines: 3, newStart: 4, newLines: 3, lines: [" 4", "-5", "+five", " 6"] }
  transcript.result("c1", "updated", { toolUseResult: { filePath: file_path, structuredPatch: [hunk] } })
  putSession(place, transcript.records)
  await syncHome(place)
  const complete = await recoverIn(place, folder, "a.txt", "--at", SESSION)
  expect(complete.stderr.replace(/\s+/g, " ")).toContain("The lines that no message shows are those of commit")
  expect(readFileSync(join(folder, "a.recovered.txt"), "utf8")).toBe(lines("five"))
  writeFileSync(join(folder, ".git", "HEAD"), "ref: refs/heads/none\n")
  gitAt("2026-01-01T10:00:00Z", "branch", "-D", "main")
  const partial = await recoverIn(place, folder, "a.txt", "--at", SESSION)
  expect(partial.stderr).toContain("PARTIAL: 3 lines known")
  expect(readFileSync(join(folder, "a.partial.txt"), "utf8")).toBe(
    "[dex: not known: lines 1 to 3]\n4\nfive\n6\n[dex: not known: from line 7 on]",
  )
})

test("a removed secret makes a file partial", async () => {
  const key = ["sk", "ant", "api03", "Zx8Qm4Lr7Tn2Vb6Kc1Wd9Sf5Hg3Jy0Pa-Zx8Qm4Lr7Tn2Vb6Kc1Wd9Sf5Hg3Jy0Pb-AAA"].join("-")
  const { place, folder } = await home({ "a.ts": `const key = "${key}"\n` })
  const { stderr } = await recoverIn(place, folder, "a.ts", "--at", SESSION)
  expect(stderr).toContain("PARTIAL")
  expect(stderr).toContain("dex removed 1 secret from it.")
})
