import { spawn } from "node:child_process"
import { createInterface } from "node:readline"

type Hook = { key: string; command: string; currentHash: string; trustStatus: string }
type Answer = { id?: number; result?: { data?: { hooks: Hook[] }[] }; error?: unknown }

/** Trusts all hooks in Codex, through the same server that Codex's terminal interface uses. Returns the newly trusted ones. */
export async function trustCodexHooks(command: string[], cwd: string, env: Record<string, string>): Promise<string[]> {
  const child = spawn(command[0]!, [...command.slice(1), "app-server"], { cwd, env, stdio: ["pipe", "pipe", "ignore"] })
  const waiting = new Map<number, (answer: Answer) => void>()
  createInterface({ input: child.stdout }).on("line", (line) => {
    const answer = JSON.parse(line) as Answer
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer)
  })
  let id = 0
  const call = (method: string, params: unknown) =>
    new Promise<Answer>((done) => {
      waiting.set(++id, done)
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
    })
  try {
    await call("initialize", { clientInfo: { name: "dex-e2e", version: "0" } })
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "initialized" })}\n`)
    const { result } = await call("hooks/list", { cwds: [cwd] })
    const hooks = result?.data?.flatMap((one) => one.hooks) ?? []
    const value = Object.fromEntries(hooks.map(({ key, currentHash }) => [key, { trusted_hash: currentHash }]))
    const { error } = await call("config/batchWrite", {
      edits: [{ keyPath: "hooks.state", value, mergeStrategy: "upsert" }],
    })
    if (error !== undefined) throw new Error(JSON.stringify(error))
    return hooks.filter(({ trustStatus }) => trustStatus === "untrusted").map((hook) => hook.command)
  } finally {
    child.stdin.end()
    child.kill()
  }
}
