import { HOOK_TIMEOUT_MS } from "../kit/proactive-hooks.ts"

/**
 * A file that OpenCode loads. It imports nothing but Node's own, asks dex in a process of its own, and never throws. `node`
 * is what runs the hook's program, where it does not run by itself.
 */
export function opencodePlugin(hook: string, node?: string): string {
  const start =
    node === undefined
      ? 'spawn(HOOK, ["opencode", event], { stdio: ["pipe", "pipe", "ignore"] })'
      : 'spawn(NODE, [HOOK, "opencode", event], { stdio: ["pipe", "pipe", "ignore"], windowsHide: true })'
  return `// Offers what dex remembers at the moment it may help. Written by \`dex install\`; \`dex uninstall\` removes it.
import { spawn } from "node:child_process"

const HOOK = ${JSON.stringify(hook)}
${node === undefined ? "" : `const NODE = ${JSON.stringify(node)}\n`}
const ask = (event, input) =>
  new Promise((done) => {
    try {
      let said = ""
      const child = ${start}
      const timer = setTimeout(() => {
        done("")
        child.kill("SIGKILL")
      }, ${HOOK_TIMEOUT_MS})
      const end = (text) => {
        clearTimeout(timer)
        done(text)
      }
      child.on("error", () => end(""))
      child.on("close", (code) => end(code === 0 ? said.trim() : ""))
      child.stdin.on("error", () => {})
      child.stdout.setEncoding("utf8").on("data", (text) => {
        if (said.length < 20000) said += text
      })
      child.stdin.end(JSON.stringify(input))
    } catch {
      done("")
    }
  })

export const Dex = async ({ directory }) => {
  const started = new Set()
  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      try {
        const typed = parts.find((part) => part.type === "text" && !part.synthetic)
        if (!typed) return
        const input = { session_id: sessionID, cwd: directory, prompt: typed.text }
        const isFirst = !started.has(sessionID)
        started.add(sessionID)
        const said = await Promise.all([isFirst ? ask("session.start", input) : "", ask("chat.message", input)])
        for (const text of said.filter(Boolean))
          parts.push({ ...typed, id: \`prt_zz\${Date.now().toString(16)}dex\${parts.length}\`, text, synthetic: true })
      } catch {}
    },
    "tool.execute.after": async ({ tool, sessionID, args }, output) => {
      try {
        const exit = output.metadata?.exit
        if (typeof output.output !== "string" || !(tool === "read" || (tool === "bash" && exit))) return
        const said = await ask("tool.execute.after", {
          session_id: sessionID,
          cwd: directory,
          tool_name: tool,
          tool_input: args,
          ...(tool === "bash" && { exit, output: output.output }),
        })
        if (said) output.output += \`\\n\\n\${said}\`
      } catch {}
    },
  }
}
`
}
