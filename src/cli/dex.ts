#!/usr/bin/env node
// This file runs first, and must run on an old Node. It therefore imports nothing that loads the database before it has checked
// the version: on Node 20 that would end the process without a message.
import module from "node:module"
import { VERSION } from "../app/version.ts"
import { hasPicker } from "./terminal/has-picker.ts"

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(
    `dex needs Node 22.18 or newer; this is ${process.versions.node}. Install a newer one from https://nodejs.org and run dex again.\n`,
  )
  // An exit code of 2 from a hook would block the agent.
  process.exit(process.argv[2] === "hook" ? 0 : 2)
}
if (process.env.DEX_MODEL_RUN) {
  // dex uses an agent as a model, and that agent started this process, as a hook or an MCP server. Without this
  // check, the process could start the agent again, and so on without end.
  process.stderr.write("dex does nothing here: it was started by an agent that dex uses as a model.\n")
  process.exit(process.argv[2] === "hook" ? 0 : 2)
}
const [, , first, second, third, before] = process.argv
const isStatusLine = first === "usage" && second === "--line"
if (isStatusLine && (process.argv.length === 4 || (third === "--before" && process.argv.length === 6))) {
  // A status line runs this every few seconds, so nothing else is loaded.
  const { printUsageLine } = await import("./usage-line.ts")
  process.exit(await printUsageLine(process.env, before))
}
// Without this, Windows would run a git.exe or an agent from the current folder, which may be a stranger's repository.
if (process.platform === "win32") process.env.NoDefaultCurrentDirectoryInExePath = "1"
module.enableCompileCache?.()
// node:sqlite, which reads other programs' databases, warns on Node 22 that it is experimental.
process.removeAllListeners("warning")
if (process.argv[2] === "hook" && !isTypedByPerson(process.argv.slice(3))) {
  // An agent is waiting, so nothing else is loaded. This call ends the process.
  const { hookCommand } = await import("../serve/hooks/main.ts")
  await hookCommand(process.argv.slice(3))
}
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0) // `dex list | head` is not an error
  const reason =
    error.code === "ENOSPC"
      ? "no space is left on the device. Free some space, or write the output elsewhere."
      : `${error.message}.`
  process.stderr.write(`dex: The output could not be written: ${reason}\n`)
  process.exit(2)
})

/** True if a person typed `dex hook`, and should see its help. An agent would take the help for the hook's answer. */
function isTypedByPerson(words: string[]): boolean {
  if (words.includes("--help") || words.includes("-h")) return true
  return words.length < 2 && process.stdin.isTTY
}

if (process.argv[2] === "--version") process.stdout.write(`dex ${VERSION}\n`)
else {
  process.stderr.on("error", () => {}) // the answer is printed even if notes cannot be written
  process.exitCode = await run(process.argv.slice(2))
}

/** Serves, syncs and opens the picker without loading what the other commands need: an agent or a person waits for the start. */
async function run(words: string[]): Promise<number> {
  try {
    if (words[0] === "serve") return await (await import("./serve.ts")).serveCommand(words.slice(1))
    if (words[0] === "sync") return await (await import("./quick-commands.ts")).runSync(words.slice(1))
    if (words.length === 0 && hasPicker(process.stdout, process.env)) {
      const code = await (await import("./open-picker.ts")).openPicker({ readsFirst: true })
      if (code !== undefined) return code
    }
  } catch (error) {
    return (await import("./main.ts")).printError(error)
  }
  return (await import("./main.ts")).main(words)
}
