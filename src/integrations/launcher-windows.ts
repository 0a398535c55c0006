import type { Bin, WantedFile } from "../agents/kit/wiring.ts"
import { batchFile, READING, RETRIEVAL_AGENT, shellStart } from "../agents/kit/wiring.ts"

/**
 * What agents start on Windows: scripts for Node, which everybody can start without a shell, and beside two of them a batch
 * file for shells. They do what the programs for sh do.
 */
export function windowsLaunchers(bin: Bin, script: string, dexHome: string | undefined): WantedFile[] {
  const { node } = bin.windows!
  const file = (path: string, content: string): WantedFile => ({ path, additions: [{ type: "file", content }] })
  const start = startLines(script, dexHome)
  return [
    file(bin.dex, dexScript(start)),
    file(batchFile(bin.dex), batch(node, "dex.mjs", "")),
    file(bin.sync!, syncScript(bin.dex)),
    file(bin.guard!, guardScript(shellStart(bin))),
    ...(bin.hook === undefined
      ? []
      : [
          file(bin.hook, hookScript(start)),
          file(batchFile(bin.hook), batch(node, "dex-hook.mjs", " 2>nul\r\nexit /b 0")),
        ]),
  ]
}

function startLines(script: string, dexHome: string | undefined): string {
  const home = dexHome ? `process.env.DEX_HOME ||= ${JSON.stringify(dexHome)}\n` : ""
  return `import { existsSync } from "node:fs"
import { pathToFileURL } from "node:url"

const script = ${JSON.stringify(script)}
${home}`
}

function dexScript(start: string): string {
  return `// Starts dex from any environment. Written by \`dex install\`; \`dex uninstall\` removes it.
${start}if (!existsSync(script)) {
  process.stderr.write(\`dex is no longer at \${script}. Install it (npm install -g dexctx) and run: dex install\\n\`)
  process.exit(2)
}
process.argv[1] = script
await import(pathToFileURL(script).href)
`
}

/** Where dex is gone, an agent's work goes on: some agents take a hook's failure for a veto. */
function hookScript(start: string): string {
  return `// Agents' hooks ask it what dex knows of this moment; mostly it says nothing. Written by \`dex install\`;
// \`dex uninstall\` removes it. To silence it: DEX_QUIET=1, or dex config set proactive.enabled false
${start}const isQuiet = !["", "0", "false"].includes(process.env.DEX_QUIET ?? "")
if (isQuiet || !existsSync(script)) {
  // What was sent is read: an agent must not find its pipe broken.
  process.stdin.on("error", () => process.exit(0)).on("end", () => process.exit(0)).resume()
} else {
  process.argv.splice(1, 1, script, "hook")
  await import(pathToFileURL(script).href).catch(() => process.exit(0))
}
`
}

function syncScript(dex: string): string {
  return `// Syncs in the background: the agent does not wait, nothing is printed, it ends within a minute, and where a sync
// runs already it leaves it to that. Written by \`dex install\`; \`dex uninstall\` removes it.
import { spawn } from "node:child_process"

const dex = ${JSON.stringify(dex)}
const options = { detached: true, stdio: "ignore", windowsHide: true }
spawn(process.execPath, [dex, "sync", "--no-wait", "--max-seconds", "60"], options).on("error", () => {}).unref()
`
}

/** As the guard for sh: dex with a command that reads, and no sign by which a shell would do more. */
function guardScript(dex: string): string {
  return `// Lets the ${RETRIEVAL_AGENT} sub-agent run what reads the memory, and nothing else. Written by \`dex install\`;
// \`dex uninstall\` removes it.
const dex = ${JSON.stringify(`${dex} `)}
let asked = ""
for await (const text of process.stdin.setEncoding("utf8")) asked += text
let command
try {
  command = JSON.parse(asked).tool_input.command
} catch {}
const reads = /^(?:${READING.join("|")})(?: [^\\\\;|&$\`<>(){}\\x00-\\x1f]*)?$/
if (typeof command === "string" && command.startsWith(dex) && reads.test(command.slice(dex.length))) {
  const permissionDecision = { permissionDecision: "allow", permissionDecisionReason: "it only reads" }
  process.stdout.write(JSON.stringify({ hookSpecificOutput: { hookEventName: "PreToolUse", ...permissionDecision } }))
} else {
  process.stderr.write("This sub-agent may only run dex to read: ${READING.join(", ")}. One command, no pipes, no redirection, no $ ( ) { }.\\n")
  process.exitCode = 2
}
`
}

/** Batch files are read in the console's own code page, which is changed only for a path that needs it. */
function batch(node: string, script: string, end: string): string {
  const isPlain = /^[\x20-\x7e]*$/.test(node)
  const lines = [
    "@echo off",
    "rem Written by dex install; dex uninstall removes it.",
    ...(isPlain ? [] : ["chcp 65001 >nul"]),
    `"${node.replaceAll("%", "%%")}" "%~dp0${script}" %*${end}`,
  ]
  return `${lines.join("\r\n")}\r\n`
}
