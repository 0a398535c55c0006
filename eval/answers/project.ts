import { execFileSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { CACHE_DIR } from "../home.ts"
import { BENCH_DIR, requirePath } from "../set.ts"
import { genuineCorpus } from "../sets/corpus.ts"

export type Project = {
  /** A clone of the genuine conversations' own project. */
  clone: string
  /** A folder like `~/.claude`, with these conversations as if all of them had taken place in that clone. */
  claude: string
  /** Replaces the paths of the original authors in a text by the clone's path. */
  mapped(text: string): string
}

/** Git, code and documents are part of the answers, so questions are asked inside a clone of the project. */
export function genuineProject(): Project {
  const clone = join(CACHE_DIR, "project")
  const claude = join(CACHE_DIR, "project-claude")
  const bundle = requirePath(join(BENCH_DIR, "commits/entireio-cli.bundle"))
  const source = genuineCorpus()
  if (!existsSync(clone)) execFileSync("git", ["clone", "--quiet", "--branch", "main", bundle, clone])
  const roots = rootsOf(source)
  const mapped = (text: string) => roots.reduce((text, root) => text.replaceAll(root, clone), text)
  if (!existsSync(claude)) {
    const partial = `${claude}.${process.pid}`
    rmSync(partial, { recursive: true, force: true })
    for (const entry of readdirSync(join(source, "projects"), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const folder = join(partial, entry.parentPath.slice(source.length))
      mkdirSync(folder, { recursive: true })
      const [from, to] = [join(entry.parentPath, entry.name), join(folder, entry.name)]
      writeFileSync(to, mapped(readFileSync(from, "utf8")))
      const { atime, mtime } = statSync(from)
      utimesSync(to, atime, mtime)
    }
    renameSync(partial, claude)
  }
  return { clone, claude, mapped }
}

/**
 * The folders in which the conversations took place, the longest first, so that a worktree is not mistaken for a folder of its
 * checkout.
 */
function rootsOf(source: string): string[] {
  const roots = new Set<string>()
  for (const folder of readdirSync(join(source, "projects"))) {
    for (const file of readdirSync(join(source, "projects", folder)).filter((name) => name.endsWith(".jsonl"))) {
      const text = readFileSync(join(source, "projects", folder, file), "utf8")
      for (const [, cwd] of text.matchAll(/"cwd":"([^"]+)"/g))
        if (cwd!.replaceAll(/[^\w-]/g, "-").replaceAll("_", "-") === folder) roots.add(cwd!)
    }
  }
  return [...roots].sort((a, b) => b.length - a.length)
}
