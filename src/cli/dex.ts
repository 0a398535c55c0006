#!/usr/bin/env node
// The first file that runs, and the only one that an old Node must be able to read: so it imports nothing that could
// load the database before the version is known. On Node 20 that ends the process without a word.
import module from "node:module"
import { VERSION } from "../app/version.ts"

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(
    `dex needs Node 22.18 or newer; this is ${process.versions.node}. Install a newer one from https://nodejs.org and run dex again.\n`,
  )
  // To an agent, 2 from a hook is a veto.
  process.exit(process.argv[2] === "hook" ? 0 : 2)
}
if (process.env.DEX_MODEL_RUN) {
  // Neither its hooks nor its servers: what is asked here is asked by dex, and would go round in a circle.
  process.stderr.write("dex does nothing here: it was started by an agent that dex asks as a model.\n")
  process.exit(process.argv[2] === "hook" ? 0 : 2)
}
if (process.argv[2] === "usage" && process.argv[3] === "--line" && process.argv.length === 4) {
  // A status line asks for it every few seconds.
  const { printUsageLine } = await import("./usage-line.ts")
  process.exit(printUsageLine(process.env))
}
// Or Windows would start a git.exe, or an agent, that stands in the current folder, which may be anybody's repository.
if (process.platform === "win32") process.env.NoDefaultCurrentDirectoryInExePath = "1"
module.enableCompileCache?.()
// node:sqlite, which reads other programs' databases, warns on Node 22 that it is experimental.
process.removeAllListeners("warning")
if (process.argv[2] === "hook" && !isPersons(process.argv.slice(3))) {
  // An agent waits for it: it starts without the rest, and ends the process itself.
  const { hookCommand } = await import("../serve/hooks/main.ts")
  await hookCommand(process.argv.slice(3))
}
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0) // `dex list | head` is not an error
  const why =
    error.code === "ENOSPC"
      ? "no space is left on the device. Free some space, or write it elsewhere."
      : `${error.message}.`
  process.stderr.write(`dex: The output could not be written: ${why}\n`)
  process.exit(2)
})

/** A person who tries it is told what it is for. An agent is not, whatever it left out: it would take in what is printed. */
function isPersons(words: string[]): boolean {
  if (words.includes("--help") || words.includes("-h")) return true
  return words.length < 2 && process.stdin.isTTY
}

if (process.argv[2] === "--version") process.stdout.write(`dex ${VERSION}\n`)
else {
  process.stderr.on("error", () => {}) // what is said beside an answer must not cost the answer
  const { main } = await import("./main.ts")
  process.exitCode = await main(process.argv.slice(2))
}
