import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"

// Runs the tests that these arguments of vitest choose, and then the files in which one failed again, alone. What fails both times is
// broken. What passes alone is a test that a busy machine can fail: it is named, so that somebody fixes it, and does not hide the others.

/** More than this is no accident. */
const MOST_FILES = 5

const folder = mkdtempSync(join(tmpdir(), "dex-results-"))
const results = join(folder, "results.json")
const chosen = process.argv.slice(2)
/** A file that those share who run beside each other; who has it exclusively runs alone. */
const lock = process.env.DEX_CI_LOCK

function vitest(how, ...args) {
  const line = [process.execPath, "scripts/run.mjs", "vitest", "run", ...chosen, ...args]
  const [program, ...rest] = lock === undefined ? line : ["flock", "--close", how, lock, ...line]
  return spawnSync(program, rest, { stdio: "inherit" }).status
}

process.exitCode = vitest("--shared", "--reporter=default", "--reporter=json", `--outputFile.json=${results}`)
if (process.exitCode !== 0) again(failedFiles())
rmSync(folder, { recursive: true })

function again(files) {
  if (files.length === 0 || files.length > MOST_FILES) return
  console.log(`\nOnce more, alone: ${files.join(", ")}`)
  process.exitCode = vitest("--exclusive", "--maxWorkers=1", ...files)
  if (process.exitCode === 0) console.log(`\nFailed on the busy machine and passed alone: ${files.join(", ")}`)
}

function failedFiles() {
  try {
    const { testResults } = JSON.parse(readFileSync(results, "utf8"))
    return testResults.filter(({ status }) => status === "failed").map(({ name }) => relative(process.cwd(), name))
  } catch {
    return [] // it ended before it could say
  }
}
