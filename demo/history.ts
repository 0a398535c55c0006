import { mkdirSync, utimesSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { makeRepository } from "../test/support/repository.ts"
import { lighthouse, type Step, type Story, shortStories } from "./stories.ts"

// A year of work of somebody who never lived, for pictures and for trying dex without a history of one's own.

export const TODAY = Date.parse("2026-11-10T17:30:00Z")
const MINUTE = 60_000
const DAY = 86_400_000

/** Writes what agents would have written below `home`, and the project's repository. Returns the project's folder. */
export function makeDemo(home: string): string {
  const project = join(home, "code", "lighthouse")
  const repository = makeRepository(project)
  for (const story of lighthouse(project)) {
    const { steps, ...session } = story
    const commits: string[] = []
    for (const step of steps) {
      if (step.writes) {
        mkdirSync(dirname(join(project, step.writes.path)), { recursive: true })
        writeFileSync(join(project, step.writes.path), step.writes.text)
      }
      if (!step.commits) continue
      repository.git("add", ".")
      const at = new Date(timeOf(session) + (steps.indexOf(step) + 1) * MINUTE).toISOString()
      repository.gitAt(at, "commit", "-q", "-m", step.commits)
      commits.push(repository.git("rev-parse", "--short", "HEAD"))
    }
    writeSession(home, project, story, commits)
  }
  for (const [folder, stories] of Object.entries(shortStories()))
    for (const story of stories) writeSession(home, join(home, "code", folder), story, [])
  return project
}

function timeOf({ daysAgo, minute }: Pick<Story, "daysAgo" | "minute">): number {
  return TODAY - daysAgo * DAY - minute * MINUTE
}

/** A transcript as Claude Code writes it. */
function writeSession(home: string, cwd: string, story: Story, commits: string[]): void {
  const id = idOf(`${basename(cwd)}:${story.daysAgo}:${story.minute}`)
  const lines: object[] = []
  const start = timeOf(story)
  let parent: string | null = null
  const add = (record: object) => {
    const uuid = idOf(`${id}:${lines.length}`)
    const timestamp = new Date(start + lines.length * 25_000).toISOString()
    lines.push({
      parentUuid: parent,
      isSidechain: false,
      userType: "external",
      cwd,
      sessionId: id,
      version: "2.1.325",
      gitBranch: story.branch ?? "main",
      uuid,
      timestamp,
      ...record,
    })
    parent = uuid
  }
  const answer = (content: object, given: number, said: number) =>
    add({
      type: "assistant",
      requestId: `req_${lines.length}`,
      message: {
        id: `msg_${id}_${lines.length}`,
        type: "message",
        role: "assistant",
        model: story.model,
        content: [content],
        stop_reason: null,
        usage: {
          input_tokens: 12,
          cache_creation_input_tokens: 900 + said,
          cache_read_input_tokens: given,
          output_tokens: said,
        },
      },
    })
  let made = 0
  for (const [i, step] of story.steps.entries()) {
    const given = (story.size ?? 30_000) + i * 4_000
    if (step.asks !== undefined) add({ type: "user", message: { role: "user", content: step.asks } })
    if (step.says !== undefined) answer({ type: "text", text: step.says }, given, 150 + step.says.length)
    if (!step.call) continue
    const callId = `toolu_${id.slice(0, 8)}_${i}`
    answer({ type: "tool_use", id: callId, name: step.call.name, input: step.call.input }, given, 220)
    const output = step.commits ? `[main ${commits[made++]}] ${step.commits}\n 2 files changed` : step.call.output
    const content = [{ tool_use_id: callId, type: "tool_result", content: output, is_error: step.call.failed === true }]
    add({ type: "user", message: { role: "user", content }, toolUseResult: resultOf(step, output) })
  }
  const file = join(home, ".claude", "projects", cwd.replaceAll(/[^a-zA-Z0-9]/g, "-"), `${id}.jsonl`)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
  const ended = (start + lines.length * 25_000) / 1000
  utimesSync(file, ended, ended)
}

function resultOf({ call, edits }: Step, output: string): unknown {
  if (edits) return { filePath: edits.path, structuredPatch: [edits.hunk] }
  return call?.failed ? `Error: ${output}` : { stdout: output, stderr: "", interrupted: false }
}

/** The same words give the same id. */
function idOf(words: string): string {
  let hash = 0x811c9dc5
  const digits = Array.from({ length: 32 }, (_, i) => {
    for (const sign of `${words}${i}`) hash = Math.imul(hash ^ sign.charCodeAt(0), 0x01000193)
    return ((hash >>> 13) & 15).toString(16)
  }).join("")
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
}
