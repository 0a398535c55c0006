import { join } from "node:path"
import type { Machine } from "../connectors/connector.ts"
import type { Bin, WantedFile } from "./agent.ts"

/** Where this dex runs from. */
export type Program = { node: string; script: string }

/** What agents are told to start. A hook's program is for shells. */
export function binOf(dexHome: string, { platform }: Pick<Machine, "platform">): Bin {
  if (platform === "win32") return { dex: join(dexHome, "bin", "dex.cmd") }
  return { dex: join(dexHome, "bin", "dex"), sync: join(dexHome, "bin", "dex-sync") }
}

/**
 * Small programs with absolute paths: an agent that was started from a desktop has no shell's PATH, and a folder of npx
 * or of a Node version may go. Then they say what to do.
 */
export function launcherFiles(bin: Bin, program: Program, machine: Machine): WantedFile[] {
  const file = (path: string, content: string): WantedFile => ({
    path,
    additions: [{ type: "file", content, executable: true }],
  })
  if (bin.sync === undefined) return [file(bin.dex, windowsLauncher(program))]
  return [file(bin.dex, launcher(program, machine.env.DEX_HOME)), file(bin.sync, syncProgram(bin.dex))]
}

function launcher({ node, script }: Program, dexHome: string | undefined): string {
  return `#!/bin/sh
# Starts dex from any environment. Written by \`dex install\`; \`dex uninstall\` removes it.
node=${quoted(node)}
script=${quoted(script)}
${dexHome ? `: "\${DEX_HOME:=${dexHome.replace(/["$`\\]/g, "\\$&")}}"\nexport DEX_HOME\n` : ""}if [ ! -f "$script" ]; then
  echo "dex is no longer at $script. Install it (npm install -g dexctx) and run: dex install" >&2
  exit 2
fi
if [ ! -x "$node" ]; then node=node; fi
exec "$node" "$script" "$@"
`
}

function syncProgram(dex: string): string {
  return `#!/bin/sh
# Reads what is new behind the agent's back: nobody waits, nothing is printed, it ends within a minute, and where a sync
# runs already it leaves it to that. Written by \`dex install\`; \`dex uninstall\` removes it.
trap '' HUP INT
${quoted(dex)} sync --max-seconds 60 </dev/null >/dev/null 2>&1 &
exit 0
`
}

function windowsLauncher({ node, script }: Program): string {
  return `@echo off\r\nrem Written by dex install; dex uninstall removes it.\r\n"${node}" "${script}" %*\r\n`
}

function quoted(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`
}
