import { execFileSync } from "node:child_process"
import { chmodSync, linkSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { MAX_DOCUMENT_BYTES } from "../../src/documents/document.ts"
import { listDocuments, readDocument } from "../../src/documents/files.ts"
import { tempDir } from "../support/temp.ts"

function tree(files: Record<string, string>): string {
  const dir = tempDir()
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(dir, path, ".."), { recursive: true })
    writeFileSync(join(dir, path), text)
  }
  return dir
}

const paths = async (root: string) => (await listDocuments(root)).files.map(({ path }) => path)
const reasons = async (root: string) =>
  Object.fromEntries((await listDocuments(root)).skipped.map(({ path, reason }) => [path, reason]))

describe("listing", () => {
  test("documents are listed in order, with size and time, and skipped files are reported", async () => {
    const dir = tree({
      "z.md": "z",
      "a/b.mdx": "bb",
      "a.md": "a",
      "a/x.png": "x",
      ".git/a.md": "",
      "node_modules/p/a.md": "",
      "big.txt": "",
    })
    truncateSync(join(dir, "big.txt"), MAX_DOCUMENT_BYTES + 1)
    const { files, skipped } = await listDocuments(dir)
    expect(files.map(({ path, size }) => [path, size])).toEqual([
      ["a.md", 1],
      ["a/b.mdx", 2],
      ["z.md", 1],
    ])
    expect(files.every(({ modified_at }) => Math.abs(modified_at - Date.now()) < 600_000)).toBe(true)
    expect(skipped).toEqual([
      { path: ".git", reason: "a hidden folder" },
      { path: "big.txt", reason: "larger than 2000000 bytes" },
      { path: "node_modules", reason: "node_modules" },
    ])
  })

  test("a root inside node_modules, a root that is a link and a single file as root work", async () => {
    const dir = tree({
      "node_modules/p/README.md": "p",
      "node_modules/p/node_modules/q/README.md": "q",
      "one.md": "1",
      "two.md": "2",
    })
    expect(await paths(join(dir, "node_modules/p"))).toEqual(["README.md"])
    symlinkSync(join(dir, "node_modules/p"), join(dir, "link"))
    expect(await paths(join(dir, "link"))).toEqual(["README.md"])
    expect(await readDocument(join(dir, "link"), "README.md")).toBe("p")
    expect(await paths(join(dir, "one.md"))).toEqual(["one.md"])
    expect(await readDocument(join(dir, "one.md"), "one.md")).toBe("1")
    await expect(readDocument(join(dir, "one.md"), "two.md")).rejects.toThrow("the single file one.md")
  })

  test("stops at the limit, and reports that the rest was not listed", async () => {
    const { files, skipped } = await listDocuments(tree({ "a.md": "", "b.md": "", "c.md": "" }), { limit: 2 })
    expect(files.map(({ path }) => path)).toEqual(["a.md", "b.md"])
    expect(skipped).toEqual([{ path: "", reason: "more than 2 documents: the rest was not listed" }])
  })

  test("it can be cancelled, and a root that is gone is an error that says so", async () => {
    const dir = tree({ "a.md": "" })
    await expect(listDocuments(dir, { signal: AbortSignal.abort() })).rejects.toThrow()
    await expect(listDocuments(join(dir, "gone"))).rejects.toMatchObject({ code: "no_such_folder" })
    await expect(listDocuments("/dev/zero")).rejects.toMatchObject({ code: "not_a_folder" })
  })

  test("a folder that cannot be read is counted", async (context) => {
    if (process.getuid?.() === 0) return context.skip("root reads everything")
    const dir = tree({ "locked/a.md": "", "b.md": "" })
    chmodSync(join(dir, "locked"), 0)
    onTestFinished(() => chmodSync(join(dir, "locked"), 0o700))
    expect(await paths(dir)).toEqual(["b.md"])
    expect(await reasons(dir)).toEqual({ locked: "a folder that cannot be read" })
  })
})

describe("nothing outside the root is read", () => {
  test("links to files and folders, loops, and paths that climb", async () => {
    const outside = tree({ "secret.md": "SECRET", "d/secret.md": "SECRET" })
    const dir = tree({ "in/a.md": "a" })
    symlinkSync(join(outside, "secret.md"), join(dir, "file.md"))
    symlinkSync(join(outside, "d"), join(dir, "folder"))
    symlinkSync(dir, join(dir, "loop"))
    symlinkSync(join(dir, "in"), join(dir, "inner"))
    symlinkSync("nowhere.md", join(dir, "broken.md"))
    expect(await paths(dir)).toEqual(["in/a.md"])
    expect(await reasons(dir)).toEqual(
      Object.fromEntries(["broken.md", "file.md", "folder", "inner", "loop"].map((path) => [path, "a symbolic link"])),
    )
    const up = `../${outside.split("/").at(-1)}/secret.md`
    const tried = [
      "file.md",
      "folder/secret.md",
      "inner/a.md",
      "loop/in/a.md",
      up,
      `in/../${up}`,
      join(outside, "secret.md"),
      "in//a.md",
    ]
    for (const path of [...tried, "./in/a.md", "in/a.md\0", "", "in", "/etc/passwd"])
      await expect(readDocument(dir, path), path).rejects.toMatchObject({ code: "document_refused" })
    expect(await readDocument(dir, "in/a.md")).toBe("a")
  })

  test("a folder that is exchanged for a link over and over while it is read gives the document or nothing", async () => {
    const outside = tree({ "a.md": "SECRET" })
    const dir = tree({ "d/a.md": "inside" })
    const real = join(dir, "d")
    const away = join(dir, "away")
    let stop = false
    const swapping = (async () => {
      while (!stop) {
        renameSync(real, away)
        symlinkSync(outside, real)
        await new Promise(setImmediate)
        rmSync(real)
        renameSync(away, real)
        await new Promise(setImmediate)
      }
    })()
    const seen = { inside: 0, refused: 0 }
    for (let i = 0; i < 500; i++) {
      const text = await readDocument(dir, "d/a.md").catch(() => undefined)
      expect(text).not.toBe("SECRET")
      seen[text === undefined ? "refused" : "inside"]++
    }
    stop = true
    await swapping
    expect(seen.refused).toBeGreaterThan(0)
    expect(seen.inside + seen.refused).toBe(500)
  })

  test("pipes, sockets and devices are refused without waiting", async () => {
    const dir = tree({ "a.md": "a" })
    execFileSync("mkfifo", [join(dir, "pipe.md")])
    const server = createServer().listen(join(dir, "socket.md"))
    onTestFinished(() => void server.close())
    await new Promise((resolve) => server.once("listening", resolve))
    symlinkSync("/dev/zero", join(dir, "device.md"))
    mkdirSync(join(dir, "folder.md"))
    expect(await paths(dir)).toEqual(["a.md"])
    expect(await reasons(dir)).toEqual({
      "device.md": "a symbolic link",
      "pipe.md": "not a regular file",
      "socket.md": "not a regular file",
    })
    for (const path of ["pipe.md", "socket.md", "device.md", "folder.md"])
      await expect(readDocument(dir, path), path).rejects.toMatchObject({ code: "document_refused" })
  })

  test("only documents are read: no other file, nothing in hidden folders or node_modules", async () => {
    const dir = tree({ ".env": "KEY", ".git/config.md": "x", "node_modules/p/a.md": "x", id_rsa: "x" })
    for (const path of [".env", ".git/config.md", "node_modules/p/a.md", "id_rsa"])
      await expect(readDocument(dir, path), path).rejects.toMatchObject({ code: "document_refused" })
  })
})

test("binary and oversized files are refused; UTF-16 is read; a hard link is an ordinary file", async () => {
  const dir = tree({ "bin.txt": "a\0b", "utf8.md": "\ufeffü", "big.md": "" })
  writeFileSync(join(dir, "utf16.txt"), Buffer.from("\ufeffhé", "utf16le"))
  truncateSync(join(dir, "big.md"), MAX_DOCUMENT_BYTES + 1)
  linkSync(join(dir, "utf8.md"), join(dir, "hard.md"))
  await expect(readDocument(dir, "bin.txt")).rejects.toThrow("a binary file")
  await expect(readDocument(dir, "big.md")).rejects.toThrow("larger than")
  expect(await readDocument(dir, "utf16.txt")).toBe("hé")
  expect(await readDocument(dir, "hard.md")).toBe("\ufeffü")
})
