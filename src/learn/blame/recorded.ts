import { array, isRecord, number, record, records, string } from "../../core/record.ts"
import type { CommitDiff } from "../../git/commit-diffs.ts"

// Reads authors that the repository itself records: git-ai notes, Entire trailers, Agent Trace files, co-authors.

/** A recorded author. `session` is the agent's own id. `lines` is set if the record covers only some lines. */
export type RecordedAuthor = {
  by: "git-ai" | "Entire" | "Agent Trace" | "Co-Authored-By"
  agent?: string
  session?: string
  path?: string
  lines?: [first: number, last: number][]
}

/** Returns the records, strongest first: records of lines, then of sessions, then those that name only an agent. */
export function recordedAuthors(
  commit: Pick<CommitDiff, "hash" | "body" | "note">,
  traces: readonly AgentTrace[],
): RecordedAuthor[] {
  return [
    ...gitAiNote(commit.note),
    ...traces.filter(({ revision }) => revision === commit.hash).map(({ revision: _, ...one }) => one),
    ...entireTrailers(commit.body),
    ...coAuthors(commit.body),
  ]
}

/** Returns the first record about a line. */
export function recordedAuthorOfLine(
  all: readonly RecordedAuthor[],
  path: string,
  line: number,
): RecordedAuthor | undefined {
  return all.find(
    (one) =>
      (one.path === undefined || one.path === path) &&
      (one.lines === undefined || one.lines.some(([first, last]) => line >= first && line <= last)),
  )
}

/** Parses the format authorship/3.0.0: each file with the lines of each session, then three dashes, then the sessions as JSON. */
function gitAiNote(note: string): RecordedAuthor[] {
  const separator = note.search(/^---$/m)
  if (separator === -1) return []
  const sessionFacts = parseJson(note.slice(separator + 3))
  if (!/^authorship\/3\./.test(string(sessionFacts?.schema_version) ?? "")) return []
  const sessions = { ...record(sessionFacts?.prompts), ...record(sessionFacts?.sessions) }
  const authors: RecordedAuthor[] = []
  let path: string | undefined
  for (const line of note.slice(0, separator).split("\n")) {
    const entry = /^\s+(\S+)\s+([\d,-]+)$/.exec(line)
    if (!entry) path = line.trim() === "" ? path : unquote(line.trim())
    else if (path !== undefined) {
      const agent = record(record(sessions[entry[1]!.split("::")[0]!])?.agent_id)
      if (agent)
        authors.push({ by: "git-ai", ...agentAndSession(agent.tool, agent.id), path, lines: rangesIn(entry[2]!) })
    }
  }
  return authors
}

function rangesIn(text: string): [number, number][] {
  return text.split(",").flatMap((one): [number, number][] => {
    const [first, last = first] = one.split("-").map(Number)
    return first !== undefined && last !== undefined && first > 0 ? [[first, last]] : []
  })
}

function entireTrailers(body: string): RecordedAuthor[] {
  const trailerValues = (name: string) =>
    [...body.matchAll(new RegExp(`^${name}: *(\\S{1,200})`, "gm"))].map(([, value]) => value!)
  const sessions = trailerValues("Entire-Session")
  if (sessions.length > 0) return sessions.map((session) => ({ by: "Entire", session }))
  return trailerValues("Entire-Checkpoint")
    .slice(0, 1)
    .map(() => ({ by: "Entire" }))
}

/** Agents that sign commits as co-author. Only agents are recognised, never people. */
const CO_AUTHORS: [RegExp, string][] = [
  [/claude|anthropic/i, "Claude Code"],
  [/codex|openai/i, "Codex"],
  [/copilot/i, "Copilot"],
  [/cursor/i, "Cursor"],
  [/gemini/i, "Gemini CLI"],
  [/opencode/i, "OpenCode"],
  [/aider/i, "Aider"],
  [/\bamp\b|sourcegraph/i, "Amp"],
  [/devin/i, "Devin"],
]

function coAuthors(body: string): RecordedAuthor[] {
  return [...body.matchAll(/^Co-authored-by: *(.{1,200})$/gim)].flatMap(([, coAuthor]): RecordedAuthor[] => {
    const agent = CO_AUTHORS.find(([pattern]) => pattern.test(coAuthor!))?.[1]
    return agent === undefined ? [] : [{ by: "Co-Authored-By", agent }]
  })
}

export type AgentTrace = RecordedAuthor & { revision: string }

/** Parses Agent Trace records, one per line. Ignores records without a revision, and lines that a person wrote. */
export function agentTraces(text: string): AgentTrace[] {
  return text.split("\n").flatMap((line) => {
    const trace = parseJson(line)
    const revision = string(record(trace?.vcs)?.revision)
    if (!trace || revision === undefined) return []
    const tool = record(trace.tool)?.name
    return records(trace.files).flatMap((file) =>
      records(file.conversations).flatMap((one): AgentTrace[] => {
        const path = string(file.path)
        const isPerson = record(one.contributor)?.type === "human"
        const lines = records(one.ranges).flatMap((range): [number, number][] => {
          const [first, last] = [number(range.start_line), number(range.end_line)]
          return first === undefined || last === undefined ? [] : [[first, last]]
        })
        if (path === undefined || isPerson || lines.length === 0) return []
        return [{ revision, by: "Agent Trace", ...agentAndSession(tool, sessionIn(one)), path, lines }]
      }),
    )
  })
}

/** Returns the last part of the URL of the related session or, if there is none, of the conversation. */
function sessionIn(conversation: Record<string, unknown>): string | undefined {
  const related = records(array(conversation.related).filter(isRecord)).find(({ type }) => type === "session")
  return (string(related?.url) ?? string(conversation.url))?.split(/[/?#]/).filter(Boolean).at(-1)
}

function agentAndSession(agent: unknown, session: unknown): { agent?: string; session?: string } {
  const [name, id] = [string(agent), string(session)]
  return { agent: name, session: id }
}

function unquote(path: string): string {
  return /^".*"$/.test(path) ? path.slice(1, -1) : path
}

function parseJson(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined // another program's file; what cannot be parsed is ignored
  }
}
