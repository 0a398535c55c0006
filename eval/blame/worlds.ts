import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { CACHE_DIR } from "../home.ts"
import { BENCH_DIR, requirePath } from "../set.ts"
import type { GoldCommit } from "./gold.ts"

// The same work as it would be in other repositories: squashed, rebased, formatted differently, moved to other folders.

/** A commit to evaluate, and the gold commits whose lines it contains. */
export type Asked = { hash: string; of: GoldCommit[] }
export type World = { name: string; folder: string; asked: Asked[]; isSquashed?: true }

export function worlds(gold: GoldCommit[]): World[] {
  const folder = bundle()
  return [
    { name: "as it is", folder, asked: gold.map((one) => ({ hash: one.hash, of: [one] })) },
    { name: "squash merged", folder, asked: once("squashed", () => squashed(folder, gold), gold), isSquashed: true },
    { name: "rebased", folder, asked: once("rebased", () => rebased(folder, gold), gold) },
    rewritten("reformatted", folder, gold, { text: reformatted }),
    rewritten("folders renamed", folder, gold, { path: renamed }),
  ]
}

/** The repository, with every branch of the bundle. */
export function bundle(): string {
  const folder = join(CACHE_DIR, "blame-repository")
  if (!existsSync(folder)) {
    const from = requirePath(join(BENCH_DIR, "commits/entireio-cli.bundle"))
    execFileSync("git", ["clone", "--quiet", "--branch", "main", from, `${folder}.${process.pid}`])
    renameSync(`${folder}.${process.pid}`, folder)
  }
  return folder
}

type Made = { hash: string; of: string[] }[]

/** Made once: git needs a minute for it. */
function once(name: string, make: () => Made, gold: GoldCommit[]): Asked[] {
  const file = join(CACHE_DIR, `blame-${name}.json`)
  if (!existsSync(file)) writeFileSync(file, JSON.stringify(make()))
  const byHash = new Map(gold.map((one) => [one.hash, one]))
  return (JSON.parse(readFileSync(file, "utf8")) as Made).map(({ hash, of }) => ({
    hash,
    of: of.map((one) => byHash.get(one)!),
  }))
}

function git(folder: string, args: string[], more: { input?: string | Buffer; env?: Record<string, string> } = {}) {
  return execFileSync("git", args, {
    cwd: folder,
    maxBuffer: 1 << 30,
    env: { ...process.env, ...NAMES, ...more.env },
    stdio: ["pipe", "pipe", "ignore"],
    ...(more.input !== undefined && { input: more.input }),
  })
}

const said = (folder: string, ...args: string[]) => git(folder, args).toString("utf8").trim()
const NAMES = {
  GIT_AUTHOR_NAME: "Dev",
  GIT_AUTHOR_EMAIL: "dev@example.com",
  GIT_COMMITTER_NAME: "Dev",
  GIT_COMMITTER_EMAIL: "dev@example.com",
}
const ONE_DAY = 86_400

/** Every branch as one commit, made when it was merged: those that main merged, and those that it never did. */
function squashed(folder: string, gold: GoldCommit[]): Made {
  const wanted = new Set(gold.map(({ hash }) => hash))
  const made: Made = []
  const squash = (tree: string, base: string, members: string[], date: string, subject: string) => {
    const of = members.filter((hash) => wanted.delete(hash))
    if (of.length === 0) return
    const env = { GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date }
    const hash = git(folder, ["commit-tree", `${tree}^{tree}`, "-p", base, "-m", subject], { env })
    made.push({ hash: hash.toString().trim(), of })
  }
  const merges = said(folder, "log", "--merges", "--first-parent", "--reverse", "--format=%H %P%x09%at%x09%s", "main")
  for (const line of merges.split("\n")) {
    const [hashes, at, subject] = line.split("\t") as [string, string, string]
    const [merge, base, tip] = hashes.split(" ") as [string, string, string]
    squash(merge, base, said(folder, "rev-list", tip, `^${base}`).split("\n"), `${at} +0000`, subject)
  }
  for (const branch of said(folder, "for-each-ref", "--format=%(refname)", "refs/remotes/origin/b*").split("\n")) {
    const base = said(folder, "merge-base", branch, "main")
    const members = said(folder, "rev-list", branch, "^main").split("\n")
    squash(branch, base, members, said(folder, "log", "-1", "--format=%at +0000", branch), branch)
  }
  return [...made, ...[...wanted].map((hash) => ({ hash, of: [hash] }))]
}

/** How many commits earlier the new base is; fewer if that conflicts. A later base may already contain the commit. */
const EARLIER = [20, 8, 3, 1]

/** Each commit on top of an earlier state of its branch. One that conflicts with every such base stays where it is. */
function rebased(folder: string, gold: GoldCommit[]): Made {
  const made = gold.map(({ hash }) => {
    const before = said(folder, "rev-list", "--first-parent", "-n", "21", `${hash}^`).split("\n")
    for (const base of EARLIER.flatMap((earlier) => before[earlier] ?? [])) {
      const onTop = replayed(folder, hash, base)
      if (onTop !== undefined) return { hash: onTop, of: [hash] }
    }
    return { hash, of: [hash] }
  })
  const moved = made.filter(({ hash, of }) => hash !== of[0]).length
  console.error(`rebased: ${moved} of ${made.length}; the others conflict with every earlier base`)
  return made
}

function replayed(folder: string, hash: string, base: string): string | undefined {
  const commit = (tree: string, ...parents: string[]) =>
    git(folder, ["commit-tree", `${tree}^{tree}`, ...parents.flatMap((parent) => ["-p", parent]), "-m", "x"])
      .toString()
      .trim()
  try {
    const before = commit(`${hash}^`)
    const tree = said(folder, "merge-tree", "--write-tree", commit(base, before), commit(hash, before))
    const [author, committed, subject] = said(folder, "log", "-1", "--format=%at%n%ct%n%s", hash).split("\n")
    const env = {
      GIT_AUTHOR_DATE: `${author} +0000`,
      GIT_COMMITTER_DATE: `${Number(committed) + 7 * ONE_DAY} +0000`,
    }
    const made = git(folder, ["commit-tree", tree.split("\n")[0]!, "-p", base, "-m", subject!], { env })
    return made.toString().trim()
  } catch {
    return undefined // it conflicts
  }
}

type Change = { text?: (text: string) => string; path?: (path: string) => string }

/** Tabs for spaces, other spacing inside a line, spaces at its end: what a formatter may do to any file. */
function reformatted(text: string): string {
  const lines = text.split("\n").map((line) => {
    const indent = /^[ \t]*/.exec(line)![0]
    const spaces = indent.replaceAll("\t", "   ")
    return line.trim() === "" ? "" : `${spaces}${line.slice(indent.length).replaceAll(/([,(])(?=\S)/g, "$1 ")} `
  })
  return lines.join("\n")
}

const renamed = (path: string) =>
  path
    .split("/")
    .map((name, i, all) => (i < all.length - 1 ? `new-${name}` : name))
    .join("/")

/** For every commit the files that it touched, before and after it, as two commits of a separate repository. */
function rewritten(name: string, folder: string, gold: GoldCommit[], change: Change): World {
  const target = join(CACHE_DIR, `blame-${name.replaceAll(" ", "-")}`)
  if (!existsSync(target)) {
    const partial = `${target}.${process.pid}`
    rmSync(partial, { recursive: true, force: true })
    mkdirSync(partial, { recursive: true })
    git(partial, ["init", "--quiet"])
    const marks = join(partial, ".git/marks")
    git(partial, ["fast-import", "--quiet", `--export-marks=${marks}`], { input: stream(folder, gold, change) })
    renameSync(partial, target)
  }
  const lines = readFileSync(join(target, ".git/marks"), "utf8").trim().split("\n")
  const byMark = new Map(lines.map((line) => line.split(" ") as [string, string]))
  return { name, folder: target, asked: gold.map((one, i) => ({ hash: byMark.get(`:${2 * i + 2}`)!, of: [one] })) }
}

function stream(folder: string, gold: GoldCommit[], { text = (same) => same, path = (same) => same }: Change): Buffer {
  const out: Buffer[] = []
  const put = (line: string) => void out.push(Buffer.from(`${line}\n`))
  const data = (bytes: Buffer) => {
    put(`data ${bytes.length}`)
    out.push(bytes, Buffer.from("\n"))
  }
  for (const [i, { hash }] of gold.entries()) {
    const [date, subject] = said(folder, "log", "-1", "--format=%at +0000%n%s", hash).split("\n") as [string, string]
    const raw = git(folder, ["diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", "--root", hash]).toString()
    const fields = raw.split("\0").slice(0, -1)
    const files = fields
      .filter((_, k) => k % 2 === 0)
      .map((head, k) => ({ modes: head.slice(1).split(" "), name: path(fields[2 * k + 1]!) }))
      .filter(({ modes }) => modes[0] !== "160000" && modes[1] !== "160000")
    for (const side of [0, 1] as const) {
      put(`commit refs/heads/c${i}`)
      put(`mark :${2 * i + side + 1}`)
      put(`author Dev <dev@example.com> ${date}`)
      put(`committer Dev <dev@example.com> ${date}`)
      data(Buffer.from(side === 0 ? "before" : subject))
      for (const { modes, name } of files) {
        const [mode, blob] = [modes[side]!, modes[2 + side]!]
        if (mode === "000000") {
          if (side === 1) put(`D ${name}`)
          continue
        }
        const content = git(folder, ["cat-file", "blob", blob])
        put(`M ${mode === "120000" ? "120000" : "100644"} inline ${name}`)
        data(content.includes(0) ? content : Buffer.from(text(content.toString("utf8"))))
      }
    }
  }
  return Buffer.concat(out)
}
