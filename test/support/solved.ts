import { call, put, writer } from "./claude-code.ts"
import { dex } from "./dex.ts"

/** An error that a conversation of `/home/dev/proj` solved. */
export const solvedError = (i: number): string => `TypeError: quokka${i}.refresh${i} is not a function`

/** Creates a home in which this many errors were solved and learned from, with agents' hooks connected. */
export async function createHomeWithFixes(home: string, errors: number): Promise<void> {
  for (let i = 0; i < errors; i++) {
    const sessionId = `${String(i).padStart(8, "0")}-aaaa-4aaa-8aaa-aaaaaaaaaaaa`
    const session = writer({ sessionId }, `s${i}-`)
    const run = (id: string, output: string, isError: boolean) => {
      session.answer(`m_${id}`, [call(id, "Bash", { command: "npm test" })])
      const told = isError ? `Error: ${output}` : { stdout: output, stderr: "", interrupted: false }
      session.result(id, output, { toolUseResult: told }, { is_error: isError })
    }
    session.prompt("Make the tests pass")
    run(`f${i}`, solvedError(i), true)
    const filePath = `/home/dev/proj/src/token${i}.ts`
    session.answer(`m_e${i}`, [call(`e${i}`, "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
    const lines = [`-session.quokka("${i}")`, `+session.run("\\\\${i}")`]
    const structuredPatch = [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines }]
    session.result(`e${i}`, "The file was updated.", { toolUseResult: { filePath, structuredPatch } })
    run(`p${i}`, "12 passed", false)
    put(home, `.claude/projects/-home-dev-proj/${sessionId}.jsonl`, session.records)
  }
  for (const words of [["sync"], ["fix", solvedError(0)], ["install", "claude-code", "--yes", "--hooks"]]) {
    const { code, stderr } = await dex(home, words)
    if (code !== 0) throw new Error(`dex ${words[0]}: ${stderr}`)
  }
}

/** The input that Claude Code sends when a command failed with one of these errors. */
export function failureInput(session: string, i: number): string {
  return JSON.stringify({
    session_id: session,
    cwd: "/home/dev/proj",
    hook_event_name: "PostToolUseFailure",
    tool_name: "Bash",
    tool_input: { command: "npm test" },
    error: `Exit code 1\n${solvedError(i)}`,
  })
}

/** The input that Claude Code sends before it reads a file that dex knows nothing about. */
export function unknownReadInput(session: string): string {
  return JSON.stringify({
    session_id: session,
    cwd: "/home/dev/proj",
    hook_event_name: "PreToolUse",
    tool_name: "Read",
    tool_input: { file_path: "/home/dev/proj/no/such.ts" },
  })
}
