import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { syncProjectGit } from "../src/ingest/project-git.ts"
import { openKnowledge } from "../src/store/knowledge/knowledge.ts"
import type { Row } from "./report.ts"

const COMMITS = 10_000
const FILES = 3_000

/** A repository of ten thousand commits with one to eight files each, read completely, compared with git's own output. */
export async function benchGit(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "dex-bench-git-"))
  const db = openKnowledge(join(folder, "knowledge.db"))
  try {
    const repository = join(folder, "repository")
    execFileSync("git", ["init", "-q", "-b", "main", repository])
    execFileSync("git", ["fast-import", "--quiet"], {
      cwd: repository,
      input: history(),
      stdio: ["pipe", "pipe", "pipe"],
    })
    const limits = { commits: COMMITS, days: 10_000, timeoutMs: 120_000 }
    const log = ["log", "-z", "--no-merges", "--name-status", "-M", "--format=%H%x00%s%x00%b"]
    const floor = timed(() => void execFileSync("git", log, { cwd: repository, maxBuffer: 1 << 30, stdio: "pipe" }))
    const started = performance.now()
    const { added } = await syncProjectGit(db, repository, { now: Date.now(), limits })
    const first = performance.now() - started
    const commit =
      "commit refs/heads/main\ncommitter t <t@example.com> now\ndata 1\nx\nfrom refs/heads/main^0\nM 100644 inline a\ndata 1\nx\n"
    execFileSync("git", ["fast-import", "--quiet", "--date-format=now"], {
      cwd: repository,
      input: commit,
      stdio: ["pipe", "pipe", "pipe"],
    })
    const again = performance.now()
    await syncProjectGit(db, repository, { now: Date.now(), limits })
    const one = performance.now() - again
    const name = (i: number) => fileName((i * 7) % FILES)
    const asked = timed(() => {
      for (let i = 0; i < 100; i++) {
        db.git.changedTogether(repository, name(i), 20)
        db.git.commitsTouching(repository, name(i), { limit: 20 })
      }
    })
    return [
      {
        what: `a project's git facts, ${COMMITS.toLocaleString("en")} commits read whole`,
        measured: `${(first / 1000).toFixed(2)} s (${(first / floor).toFixed(2)} ×)`,
        floor: `git log itself ${(floor / 1000).toFixed(2)} s`,
        goal: "",
        ok: added === COMMITS,
      },
      { what: "the same, one new commit", measured: `${one.toFixed(0)} ms`, floor: "", goal: "", ok: true },
      {
        what: "a file's commits and what changes with it",
        measured: `${(asked / 100).toFixed(2)} ms`,
        floor: "",
        goal: "",
        ok: true,
      },
    ]
  } finally {
    db.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function timed(work: () => void): number {
  const started = performance.now()
  work()
  return performance.now() - started
}

const fileName = (i: number) => `src/part-${i % 40}/file-${i}.ts`

/** Generates the same history each time; files close to each other change together. */
function history(): string {
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff
    return seed % below
  }
  const start = Math.floor(Date.now() / 1000) - COMMITS * 60
  return Array.from({ length: COMMITS }, (_, i) => {
    const at = random(FILES)
    const names = new Set(Array.from({ length: 1 + random(8) }, () => fileName((at + random(12)) % FILES)))
    const files = [...names].map((name) => {
      const text = Array.from({ length: 20 }, (_, line) => `export const v${line} = ${random(1000)}\n`).join("")
      return `M 100644 inline ${name}\ndata ${text.length}\n${text}\n`
    })
    const message = `part-${at % 40}: change number ${i}\n\nBecause it was asked for.\n`
    return `commit refs/heads/main\ncommitter t <t@example.com> ${start + i * 60} +0000\ndata ${message.length}\n${message}\n${files.join("")}\n`
  }).join("")
}
