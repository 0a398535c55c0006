import { realpathSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import type { HookOutput } from "../agents/kit/agent.ts"
import type { Machine } from "../agents/kit/connector.ts"
import {
  type Bin,
  batchFile,
  READ_COMMANDS,
  RETRIEVAL_AGENT,
  shellStart,
  shellWord,
  syncLine,
  type WantedFile,
} from "../agents/kit/wiring.ts"
import { agents } from "../agents/registry.ts"
import type { SourceId } from "../core/conversation.ts"

/** The Node executable and the script with which this dex runs. */
export type Program = { node: string; script: string }

/**
 * A path of Node that stays valid after this shell ends: fnm creates a folder for each shell, and removes it with the shell. Only
 * Windows needs this, because elsewhere Node reports its real path.
 */
export function permanentNodePath(path: string): string {
  return /[\\/]fnm_multishells[\\/]/.test(path) ? realpathSync(path) : path
}

/** The programs that agents are configured to start; `agents/kit/wiring.ts` defines how. */
export function binOf(dexHome: string, { platform }: Pick<Machine, "platform">, node: string): Bin {
  const binPath = (name: string) => join(dexHome, "bin", name)
  if (platform === "win32")
    return {
      dex: binPath("dex.mjs"),
      sync: binPath("dex-sync.mjs"),
      guard: binPath("dex-reads.mjs"),
      hook: binPath("dex-hook.mjs"),
      windows: { node: permanentNodePath(node) },
    }
  return { dex: binPath("dex"), sync: binPath("dex-sync"), guard: binPath("dex-reads"), hook: binPath("dex-hook") }
}

/**
 * The launchers: small programs with absolute paths, because an agent started from a desktop does not have a shell's PATH. A
 * folder of npx or of a Node version may disappear; the launchers then say what to do.
 */
export function launcherFiles(bin: Bin, program: Program, machine: Machine): WantedFile[] {
  if (bin.windows) return windowsLaunchers(bin, program.script, machine.env.DEX_HOME)
  const file = (path: string, content: string): WantedFile => ({
    path,
    additions: [{ type: "file", content, executable: true }],
  })
  return [
    file(bin.dex, launcher(program, machine.env.DEX_HOME)),
    file(bin.sync!, syncProgram(bin.dex)),
    file(bin.guard!, guardProgram(bin.dex)),
    ...(bin.hook === undefined ? [] : [file(bin.hook, hookProgram(program, machine.env.DEX_HOME))]),
  ]
}

function launcher({ node, script }: Program, dexHome: string | undefined): string {
  return `#!/bin/sh
# Starts dex from any environment. Written by \`dex install\`; \`dex uninstall\` removes it.
node=${quoteForShell(node)}
script=${quoteForShell(script)}
${homeLines(dexHome)}if [ ! -f "$script" ]; then
  echo "dex is no longer at $script. Install it (npm install -g dexctx) and run: dex install" >&2
  exit 2
fi
if [ ! -x "$node" ]; then node=node; fi
exec "$node" "$script" "$@"
`
}

function homeLines(dexHome: string | undefined): string {
  return dexHome ? `: "\${DEX_HOME:=${dexHome.replace(/["$`\\]/g, "\\$&")}}"\nexport DEX_HOME\n` : ""
}

/** If more programs than this wait per processor, Node does not even start within the time limit. */
const MAX_LOAD_PER_PROCESSOR = 3

/**
 * The program for agents' hooks. If dex is gone, the agent continues undisturbed, because some agents treat a failing hook as a
 * veto. On a busy machine, Node alone takes longer to start than an agent should wait. So this program, which starts in a few
 * milliseconds, limits the time: it prints what Node finds within the limit, and prints later results at the session's next
 * event.
 */
function hookProgram({ node, script }: Program, dexHome: string | undefined): string {
  return `#!/bin/sh
# Agents' hooks call this to get what dex knows about the current work. Usually it prints nothing. Written by
# \`dex install\`; \`dex uninstall\` removes it. To silence it: DEX_QUIET=1, or dex config set proactive.enabled false
node=${quoteForShell(node)}
script=${quoteForShell(script)}
unset DEX_HOOK_LATE
crowd=${MAX_LOAD_PER_PROCESSOR * availableParallelism()}
${homeLines(dexHome)}dex=\${DEX_HOME:-$HOME/.dex}
case "$DEX_QUIET" in "" | 0 | false) ;; *) script= ;; esac
# The input is always read, so that the agent's pipe does not break.
if [ ! -f "$script" ] || [ ! -f "$dex/history.db" ]; then cat >/dev/null; exit 0; fi
if [ ! -x "$node" ]; then node=$(command -v node) || { cat >/dev/null; exit 0; }; fi
asked=$(cat)

# The session's id, which agents send first, becomes part of a file name.
session=$asked
if [ "\${#session}" -gt 4000 ]; then session=$(printf '%.4000s' "$asked"); fi
case $session in
*'"session_id"'*)
  session=\${session#*'"session_id"'}
  session=\${session#*\\"}
  session=\${session%%\\"*}
  ;;
*) session= ;;
esac
case $session in *[!A-Za-z0-9_-]*) session= ;; esac
if [ -z "$session" ] || [ "\${#session}" -gt 100 ] || { [ ! -d "$dex/late" ] && ! mkdir -m 700 "$dex/late" 2>/dev/null; }; then
  printf '%s' "$asked" | "$node" "$script" hook "$@" 2>/dev/null
  exit 0
fi

# Before a compaction nobody waits: the conversation is kept first, then what it gives back at the session's next event.
case $2 in PreCompact | PreCompress | session.compacting)
  export DEX_HOOK_LATE="$dex/late/$session.compaction"
  (
    trap '' HUP INT
    "$node" "$script" sync --max-seconds 60 </dev/null
    printf '%s' "$asked" | "$node" "$script" hook "$@"
  ) >/dev/null 2>&1 &
  exit 0
  ;;
esac

# In a process session of its own, it is not slowed down by other programs that were started from here.
apart=
if command -v setsid >/dev/null; then apart=setsid; fi
export DEX_HOOK_LATE="$dex/late/$session.$$"
{ printf '%s' "$asked" | $apart "$node" "$script" hook "$@"; } >/dev/null 2>&1 &
asking=$!

# The agent ignores the output of this hook. What dex finds is added at the session's next event.
if [ "$3" = later ]; then exit 0; fi

# If the machine is too busy to answer in time, the agent does not wait at all.
ms=250
case $DEX_HOOK_MS in
"" | *[!0-9]* | 0?* | ?????*)
  if read -r _ _ _ running _ </proc/loadavg && [ "\${running%%/*}" -gt "$crowd" ]; then ms=0; fi
  ;;
*) ms=$DEX_HOOK_MS ;;
esac 2>/dev/null
if [ "$ms" -gt 900 ]; then ms=900; fi
ms=$((ms - 50))
if [ "$ms" -gt 0 ]; then
  case $ms in ?) ms=00$ms ;; ??) ms=0$ms ;; esac
  late=
  trap late=yes USR1
  { sleep "0.$ms"; kill -USR1 $$; } </dev/null >/dev/null 2>&1 &
  [ "$late" ] || wait $asking
  kill $! 2>/dev/null
fi

case $1 in ${agentsWithOutput("text").join(" | ")}) between="
" ;; *) between='\\n' ;; esac
said=
for one in "$dex/late/$session".*; do
  minutes=10
  case $one in *.compaction)
    minutes=1440
    # A subagent's events name the session to which it belongs.
    case $asked in *'"agent_id"'*) continue ;; esac
    ;;
  esac
  # Another hook of the same session may take the file at the same time.
  [ -f "$one" ] && mv "$one" "$one~" 2>/dev/null || continue
  if [ "$(find "$one~" -mmin -$minutes 2>/dev/null)" ]; then said=$said\${said:+$between}$(cat "$one~"); fi
  rm -f "$one~"
done
if [ "$said" ]; then
  case $1 in
  ${agentsWithOutput("text").join(" | ")}) printf '%s' "$said" ;;
${outputFields()}  *) printf '{"hookSpecificOutput":{"hookEventName":"%s","additionalContext":"%s"}}' "$2" "$said" ;;
  esac
fi
exit 0
`
}

function agentsWithOutput(output: HookOutput): SourceId[] {
  return agents.filter(({ hookOutput }) => hookOutput === output).map(({ source }) => source)
}

/** The cases of agents whose hooks print a JSON object with one field. */
function outputFields(): string {
  const fields = [...new Set(agents.flatMap(({ hookOutput }) => hookOutput ?? []))].filter(
    (output) => output !== "text",
  )
  return fields
    .map((field) => `  ${agentsWithOutput(field).join(" | ")}) printf '{"${field}":"%s"}' "$said" ;;\n`)
    .join("")
}

function syncProgram(dex: string): string {
  return `#!/bin/sh
# Syncs in the background: the agent does not wait, nothing is printed, and it ends within a minute. If a sync is
# already running, it does nothing. Written by \`dex install\`; \`dex uninstall\` removes it.
trap '' HUP INT
${syncLine(quoteForShell(dex))}
exit 0
`
}

/**
 * A hook program for Claude Code that gets JSON with a command on stdin. It allows only dex commands that read, without any
 * character that a shell could use to run something else. Of JSON's escapes, it accepts only the one for a quotation mark.
 */
function guardProgram(dex: string): string {
  const start = JSON.stringify(shellWord(dex)).slice(1, -1)
  const escaped = start.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
  const pattern = `"command" *: *"${escaped} (${READ_COMMANDS.join("|")})( ([^"\\;|&$\`<>(){}]|\\\\")*)?"`
  return `#!/bin/sh
# Lets the ${RETRIEVAL_AGENT} sub-agent run only dex commands that read. Written by \`dex install\`;
# \`dex uninstall\` removes it.
asked=$(cat)
named=$(printf %s "$asked" | grep -o '"command" *:' | grep -c .)
if [ "$named" = 1 ] && printf %s "$asked" | grep -Eq ${quoteForShell(pattern)}; then
  echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"it only reads"}}'
  exit 0
fi
echo "This sub-agent may only run dex to read: ${READ_COMMANDS.join(", ")}. One command, no pipes, no redirection, no \\$ ( ) { }." >&2
exit 2
`
}

function quoteForShell(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`
}

/**
 * The programs that agents start on Windows: scripts for Node, which need no shell, and batch files next to two of them for
 * shells. They do the same as the programs for sh, except that the hook program does not limit its own time.
 */
function windowsLaunchers(bin: Bin, script: string, dexHome: string | undefined): WantedFile[] {
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

/**
 * The hook program for Windows. If dex is gone, the agent continues undisturbed, because some agents treat a failing hook as a
 * veto.
 */
function hookScript(start: string): string {
  return `// Agents' hooks call this to get what dex knows about the current work. Usually it prints nothing. Written by
// \`dex install\`; \`dex uninstall\` removes it. To silence it: DEX_QUIET=1, or dex config set proactive.enabled false
${start}const isQuiet = !["", "0", "false"].includes(process.env.DEX_QUIET ?? "")
if (isQuiet || !existsSync(script)) {
  // The input is always read, so that the agent's pipe does not break.
  process.stdin.on("error", () => process.exit(0)).on("end", () => process.exit(0)).resume()
} else {
  process.argv.splice(1, 1, script, "hook")
  await import(pathToFileURL(script).href).catch(() => process.exit(0))
}
`
}

function syncScript(dex: string): string {
  return `// Syncs in the background: the agent does not wait, nothing is printed, and it ends within a minute. If a sync is
// already running, it does nothing. Written by \`dex install\`; \`dex uninstall\` removes it.
import { spawn } from "node:child_process"

const dex = ${JSON.stringify(dex)}
const options = { detached: true, stdio: "ignore", windowsHide: true }
spawn(process.execPath, [dex, "sync", "--no-wait", "--max-seconds", "60"], options).on("error", () => {}).unref()
`
}

/**
 * Like the guard for sh: allows only dex commands that read, without any character that a shell could use to run anything else.
 */
function guardScript(dex: string): string {
  return `// Lets the ${RETRIEVAL_AGENT} sub-agent run only dex commands that read. Written by \`dex install\`;
// \`dex uninstall\` removes it.
const dex = ${JSON.stringify(`${dex} `)}
let asked = ""
for await (const text of process.stdin.setEncoding("utf8")) asked += text
let command
try {
  command = JSON.parse(asked).tool_input.command
} catch {}
const reads = /^(?:${READ_COMMANDS.join("|")})(?: [^\\\\;|&$\`<>(){}\\x00-\\x1f]*)?$/
if (typeof command === "string" && command.startsWith(dex) && reads.test(command.slice(dex.length))) {
  const permissionDecision = { permissionDecision: "allow", permissionDecisionReason: "it only reads" }
  process.stdout.write(JSON.stringify({ hookSpecificOutput: { hookEventName: "PreToolUse", ...permissionDecision } }))
} else {
  process.stderr.write("This sub-agent may only run dex to read: ${READ_COMMANDS.join(", ")}. One command, no pipes, no redirection, no $ ( ) { }.\\n")
  process.exitCode = 2
}
`
}

/** A batch file. It changes the console's code page only if the path of Node needs that. */
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
