import { spawnSync } from "node:child_process"
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"

// Runs the tests that these arguments of vitest select, and then repeats the files with failures, one at a time. A test that
// fails both times is broken. A test that passes the second time can fail on a busy machine: it is reported, so that somebody
// fixes it, and it does not hide the others.
//
// If other stages run at the same time, nothing runs alone, so DEX_RUN_AGAIN names a file for the list of failed files. The stage
// then ends with 75, and `node scripts/test-twice.mjs --again` runs the listed files.

/** The most failed files that are repeated. More are not an accident. */
const MOST_FILES = 5
const LATER = 75

const noted = process.env.DEX_RUN_AGAIN
const chosen = process.argv.slice(2)
process.exitCode = chosen[0] === "--again" ? runNoted() : runFirst()

function vitest(...args) {
  return spawnSync(process.execPath, ["scripts/run.mjs", "vitest", "run", ...args], { stdio: "inherit" }).status ?? 1
}

function runFirst() {
  const folder = mkdtempSync(join(tmpdir(), "dex-results-"))
  const results = join(folder, "results.json")
  const status = vitest(...chosen, "--reporter=default", "--reporter=json", `--outputFile.json=${results}`)
  const files = status === 0 ? [] : failedFiles(results)
  rmSync(folder, { recursive: true })
  if (files.length === 0 || files.length > MOST_FILES) return status
  if (noted === undefined) return runAgain({ chosen, files })
  appendFileSync(noted, `${JSON.stringify({ chosen, files })}\n`)
  console.log(`\nTo be run once more, alone: ${files.join(", ")}`)
  return LATER
}

function runNoted() {
  const runs = readFileSync(noted, "utf8").trim().split("\n")
  return Math.max(...runs.map((line) => runAgain(JSON.parse(line))))
}

function runAgain({ chosen, files }) {
  console.log(`\nOnce more, alone: ${files.join(", ")}`)
  const status = vitest(...chosen, "--maxWorkers=1", ...files)
  if (status === 0) console.log(`\nFailed on the busy machine and passed alone: ${files.join(", ")}`)
  return status
}

function failedFiles(results) {
  try {
    const { testResults } = JSON.parse(readFileSync(results, "utf8"))
    return testResults.filter(({ status }) => status === "failed").map(({ name }) => relative(process.cwd(), name))
  } catch {
    return [] // it ended before it could report
  }
}
