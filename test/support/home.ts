import { mkdirSync, utimesSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

export type Turn = {
  user?: string
  assistant?: string
  tool?: { name: string; input: object; output: string; error?: boolean; result?: object }
}

/** Writes a short Claude Code transcript. Turns are a minute apart. */
export function claudeSession(
  home: string,
  session: { id: string; cwd?: string; start: string; turns: Turn[]; entrypoint?: string; title?: string; pr?: string },
): string {
  const cwd = session.cwd ?? "/code/api"
  const path = join(home, ".claude", "projects", cwd.replaceAll(/[^a-zA-Z0-9]/g, "-"), `${session.id}.jsonl`)
  const lines: object[] = []
  let at = Date.parse(session.start)
  let parent: string | null = null
  let n = 0
  const push = (record: object) => {
    const uuid = `${session.id.slice(0, 8)}-${String(n++).padStart(4, "0")}-4000-8000-000000000000`
    lines.push({
      parentUuid: parent,
      isSidechain: false,
      userType: "external",
      cwd,
      sessionId: session.id,
      version: "2.1.197",
      gitBranch: "main",
      entrypoint: session.entrypoint ?? "cli",
      uuid,
      timestamp: new Date(at).toISOString(),
      ...record,
    })
    parent = uuid
    at += 60_000
  }
  const assistant = (content: object[]) =>
    push({
      type: "assistant",
      requestId: `req_${n}`,
      message: {
        id: `msg_${session.id.slice(0, 8)}_${n}`,
        type: "message",
        role: "assistant",
        model: "model-a",
        content,
        stop_reason: null,
        usage: { input_tokens: 3, output_tokens: 5, cache_read_input_tokens: 7, cache_creation_input_tokens: 2 },
      },
    })
  for (const turn of session.turns) {
    if (turn.user !== undefined) push({ type: "user", message: { role: "user", content: turn.user } })
    if (turn.assistant !== undefined) assistant([{ type: "text", text: turn.assistant }])
    if (turn.tool) {
      const id = `toolu_${session.id.slice(0, 8)}_${n}`
      assistant([{ type: "tool_use", id, name: turn.tool.name, input: turn.tool.input }])
      push({
        type: "user",
        message: {
          role: "user",
          content: [
            { tool_use_id: id, type: "tool_result", content: turn.tool.output, is_error: turn.tool.error ?? false },
          ],
        },
        toolUseResult: turn.tool.error
          ? `Error: ${turn.tool.output}`
          : (turn.tool.result ?? { stdout: turn.tool.output, stderr: "", interrupted: false }),
      })
    }
  }
  if (session.title) lines.push({ type: "custom-title", customTitle: session.title, sessionId: session.id })
  if (session.pr) lines.push({ type: "pr-link", prUrl: session.pr, sessionId: session.id })
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
  utimesSync(path, at / 1000, at / 1000)
  return path
}

/** Writes three conversations in two projects, one of them by a script. */
export function smallHome(home: string): void {
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-11-03T10:00:00Z",
    title: "Refresh token race",
    turns: [
      { user: "Two requests refresh the token at once and one of them is logged out. Why?" },
      { assistant: "The refresh token is rotated, so the second request presents a used one." },
      {
        tool: {
          name: "Bash",
          input: { command: "npm test" },
          output: "FAIL src/auth.test.ts\nError: token already used",
          error: true,
        },
      },
      { tool: { name: "Read", input: { file_path: "/code/api/src/auth.ts" }, output: "export function refresh() {}" } },
      { assistant: "I put a mutex around the refresh, so that the second request waits for the first." },
      { user: "Works. Commit it." },
      {
        tool: {
          name: "Bash",
          input: { command: "git commit -m 'auth: one refresh at a time'" },
          output: "[main 1a2b3c4] auth: one refresh at a time\n 1 file changed",
        },
      },
    ],
  })
  claudeSession(home, {
    id: "22222222-2222-4222-8222-222222222222",
    cwd: "/code/web",
    start: "2026-11-10T09:00:00Z",
    turns: [
      { user: "The sidebar flickers when the theme changes" },
      { assistant: "The theme class is set after the first paint. I moved it into the document head." },
    ],
  })
  claudeSession(home, {
    id: "33333333-3333-4333-8333-333333333333",
    start: "2026-11-11T09:00:00Z",
    entrypoint: "sdk-cli",
    turns: [{ user: "Write a commit message for this diff" }, { assistant: "auth: rotate tokens" }],
  })
}
