import { execFileSync } from "node:child_process"
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { listDocuments, readDocument } from "../../src/documents/files.ts"
import { resolveOrigin } from "../../src/documents/origins.ts"
import { copyRepository } from "../../src/git/clone.ts"
import { tempDir } from "../support/temp.ts"

const at = (cwd: string) => ({ cwd, cacheDir: join(cwd, "cache"), copyRepository })

function repository(dir: string, name: string): { folder: string; commit: () => void } {
  const folder = join(dir, name)
  mkdirSync(folder)
  const git = (...args: string[]) =>
    execFileSync("git", ["-C", folder, "-c", "user.name=t", "-c", "user.email=t@example.com", ...args], {
      stdio: "pipe",
    })
  git("init", "-q")
  return {
    folder,
    commit: () => {
      git("add", "-A")
      git("commit", "-q", "-m", "x")
    },
  }
}

describe("folders, files and packages", () => {
  test("a folder, a file, and a link to either are accepted", async () => {
    const dir = tempDir()
    mkdirSync(join(dir, "My docs"))
    writeFileSync(join(dir, "My docs", "guide.md"), "x")
    symlinkSync(join(dir, "My docs"), join(dir, "link"))
    expect(await resolveOrigin("My docs", at(dir))).toEqual({
      kind: "folder",
      root: join(dir, "My docs"),
      name: "My-docs",
    })
    expect(await resolveOrigin("link", at(dir))).toEqual({ kind: "folder", root: join(dir, "My docs"), name: "link" })
    const file = { kind: "file", root: join(dir, "My docs"), name: "guide", only: "guide.md" }
    expect(await resolveOrigin("./My docs/guide.md", at(dir))).toEqual(file)
    await expect(resolveOrigin("nowhere", at(dir))).rejects.toThrow(/nowhere does not exist\. Name a folder/)
    await expect(resolveOrigin("/dev/zero", at(dir))).rejects.toMatchObject({ code: "not_a_document" })
  })

  test("a package is found upwards, with its version; one that is not installed says what to do", async () => {
    const dir = tempDir()
    const root = join(dir, "node_modules", "@scope", "pkg")
    mkdirSync(root, { recursive: true })
    mkdirSync(join(dir, "packages", "app"), { recursive: true })
    writeFileSync(join(root, "package.json"), '{"version":"1.2.3"}')
    const cwd = join(dir, "packages", "app")
    expect(await resolveOrigin("npm:@scope/pkg", at(cwd))).toEqual({
      kind: "npm",
      root,
      name: "scope-pkg",
      version: "1.2.3",
    })
    await expect(resolveOrigin("npm:absent", at(cwd))).rejects.toThrow(
      /absent is not installed .*Run `npm install absent` there/,
    )
    for (const bad of ["", "..", "../x", "a/b", "@a", "a@1.0.0", "/etc", "a b", ".hidden"])
      await expect(resolveOrigin(`npm:${bad}`, at(cwd)), bad).rejects.toMatchObject({ code: "bad_package" })
  })
})

describe("repositories", () => {
  test("a repository with a hostile name and content is cloned, updated, and cannot reach out or run anything", async () => {
    const dir = tempDir()
    const { folder, commit } = repository(dir, "--upload-pack=touch pwned; $(touch pwned) 'x'.git")
    writeFileSync(join(folder, "README.md"), "first")
    writeFileSync(join(folder, "old.md"), "old")
    writeFileSync(join(dir, "secret.md"), "SECRET")
    symlinkSync("../../secret.md", join(folder, "link.md"))
    writeFileSync(join(folder, ".gitattributes"), "* filter=evil\n")
    commit()
    const url = `file://${folder.split("/").map(encodeURIComponent).join("/")}`
    const origin = await resolveOrigin(url, at(dir))
    expect(origin).toMatchObject({ kind: "git", name: "upload-pack-touch-pwned-touch-pwned-x" })
    expect(origin.version).toMatch(/^[0-9a-f]{12}$/)
    expect(lstatSync(join(origin.root, "link.md")).isSymbolicLink()).toBe(false)
    expect((await listDocuments(origin.root)).files.map(({ path }) => path)).toEqual(["README.md", "link.md", "old.md"])
    expect(await readDocument(origin.root, "link.md")).toBe("../../secret.md")

    writeFileSync(join(folder, "README.md"), "second")
    execFileSync("rm", [join(folder, "old.md")])
    commit()
    writeFileSync(join(origin.root, ".git", "index.lock"), "")
    expect((await resolveOrigin(url, at(dir))).version).toBe(origin.version)
    const updated = await resolveOrigin(url, { ...at(dir), update: true })
    expect(updated.version).not.toBe(origin.version)
    expect(await readDocument(updated.root, "README.md")).toBe("second")
    expect(existsSync(join(updated.root, "old.md"))).toBe(false)
    expect(readdirSync(dir, { recursive: true }).filter((path) => /(^|\/)pwned/.test(String(path)))).toEqual([])
    expect(readdirSync(join(dir, "cache")).length).toBe(1)
  })

  test("the remains of a killed copy are removed by the next, and a running one stays", async () => {
    const dir = tempDir()
    const { folder, commit } = repository(dir, "guide")
    writeFileSync(join(folder, "guide.md"), "# Guide\n")
    commit()
    for (const name of ["old.partial-a", "new.partial-b"])
      mkdirSync(join(dir, "cache", name, ".git"), { recursive: true })
    utimesSync(join(dir, "cache", "old.partial-a"), 1_000, 1_000)
    await resolveOrigin(`file://${folder}`, at(dir))
    expect(readdirSync(join(dir, "cache")).sort()).toEqual([expect.stringMatching(/^guide-/), "new.partial-b"])
  })

  test("a hook that is put into a copy does not run", async () => {
    const dir = tempDir()
    const { folder, commit } = repository(dir, "repo")
    writeFileSync(join(folder, "a.md"), "1")
    commit()
    const { root } = await resolveOrigin(`file://${folder}`, at(dir))
    mkdirSync(join(root, ".git", "hooks"), { recursive: true })
    for (const hook of ["post-checkout", "post-merge", "reference-transaction", "post-index-change"])
      writeFileSync(join(root, ".git", "hooks", hook), `#!/bin/sh\ntouch ${join(dir, "ran")}\n`, { mode: 0o755 })
    writeFileSync(join(folder, "a.md"), "2")
    commit()
    await resolveOrigin(`file://${folder}`, { ...at(dir), update: true })
    expect(readFileSync(join(root, "a.md"), "utf8")).toBe("2")
    expect(existsSync(join(dir, "ran"))).toBe(false)
  })

  test("addresses that run commands, contain secrets or are not repositories are refused, and leave nothing", async () => {
    const dir = tempDir()
    const refused = async (spec: string) => (await resolveOrigin(spec, at(dir)).catch((error) => error)).code
    expect(await refused(`ext::sh -c touch% ${dir}/pwned`)).toBe("bad_address")
    expect(await refused("fd::17")).toBe("bad_address")
    expect(await refused("http://example.com/x.git")).toBe("bad_address")
    expect(await refused("ssh://-oProxyCommand=touch/x")).toBe("bad_address")
    expect(await refused("https://user:token@example.com/x.git")).toBe("secret_in_address")
    expect(await refused("https://token@example.com/x.git")).toBe("secret_in_address")
    expect(await refused("--upload-pack=touch pwned")).toBe("no_such_folder")
    expect(await refused("-oProxyCommand=x@host:path")).toBe("no_such_folder")
    expect(await refused(`file://${dir}/nothing`)).toBe("git_failed")
    expect(existsSync(join(dir, "pwned"))).toBe(false)
    expect(existsSync(join(dir, "cache")) ? readdirSync(join(dir, "cache")) : []).toEqual([])
  })
})
