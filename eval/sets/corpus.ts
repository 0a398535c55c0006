import { execFileSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { dirname, join, relative } from "node:path"
import { CACHE_DIR } from "../home.ts"
import { CORPUS_DIR, requirePath } from "../set.ts"

/** The folder that contains `projects/` with 251 genuine conversations of one repository's makers. */
export function genuineCorpus(): string {
  const archive = requirePath(join(CORPUS_DIR, "claude-code-real.tar.xz"))
  const target = join(CACHE_DIR, "corpus")
  if (!existsSync(target)) {
    makeOnce(target, (partial) => execFileSync("tar", ["xf", archive, "-C", partial]))
  }
  return join(target, "entireio-cli")
}

/**
 * The same conversations without anything that reveals a commit: calls that commit, show the log or talk to the forge, their
 * results, and every verbatim occurrence of a subject.
 */
export function maskedCorpus(subjects: string[]): string {
  const target = join(CACHE_DIR, "corpus-masked")
  if (existsSync(target)) return target
  const source = genuineCorpus()
  // The longest first, so that no subject remains around a shorter one.
  const ordered = [...new Set(subjects)].filter((subject) => subject.length >= 8).sort((a, b) => b.length - a.length)
  makeOnce(target, (partial) => {
    for (const path of filesBelow(join(source, "projects"))) {
      const to = join(partial, relative(source, path))
      mkdirSync(dirname(to), { recursive: true })
      const text = readFileSync(path, "utf8")
      writeFileSync(to, path.endsWith(".jsonl") ? maskTranscript(text, ordered) : maskText(text, ordered))
      const { atime, mtime } = statSync(path)
      utimesSync(to, atime, mtime) // a recent last line may be incomplete, and would be read later
    }
  })
  return target
}

function makeOnce(target: string, make: (partial: string) => void): void {
  const partial = `${target}.${process.pid}`
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(partial, { recursive: true })
  make(partial)
  renameSync(partial, target)
}

function* filesBelow(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* filesBelow(path)
    else if (entry.isFile()) yield path
  }
}

const TELLS =
  /\bgit\b[^|;&\n]*\b(?:commit|log|show|reflog|rebase|cherry-pick|notes)\b|\bgh\s+(?:pr|api|issue|release)\b/

function maskTranscript(text: string, subjects: string[]): string {
  const dropped = new Set<string>()
  const lines: string[] = []
  for (const line of text.split("\n")) {
    const record = parsed(line)
    if (record === undefined) {
      lines.push(maskText(line, subjects))
      continue
    }
    lines.push(JSON.stringify(maskStrings(withoutCalls(record, dropped), subjects)))
  }
  return lines.join("\n")
}

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(line)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Subagents' records are nested in progress records, so calls and results are searched at any depth. */
function withoutCalls(value: unknown, dropped: Set<string>): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutCalls(item, dropped))
  if (typeof value !== "object" || value === null) return value
  const object = value as Record<string, unknown>
  const command = (object.input as Record<string, unknown> | undefined)?.command
  if (object.type === "tool_use" && typeof command === "string" && TELLS.test(command)) {
    dropped.add(String(object.id))
    return { ...object, input: { command: "masked" } }
  }
  if (object.type === "tool_result" && dropped.has(String(object.tool_use_id))) return { ...object, content: "masked" }
  const result = Object.fromEntries(Object.entries(object).map(([key, item]) => [key, withoutCalls(item, dropped)]))
  if ("toolUseResult" in result && holdsDropped(object.message, dropped)) result.toolUseResult = "masked"
  return result
}

function holdsDropped(message: unknown, dropped: Set<string>): boolean {
  const content = (message as { content?: unknown } | undefined)?.content
  return Array.isArray(content) && content.some((item) => dropped.has(String(item?.tool_use_id)))
}

function maskStrings(value: unknown, subjects: string[]): unknown {
  if (typeof value === "string") return maskText(value, subjects)
  if (Array.isArray(value)) return value.map((item) => maskStrings(item, subjects))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, maskStrings(item, subjects)]))
}

function maskText(text: string, subjects: string[]): string {
  let masked = text
  for (const subject of subjects) if (masked.includes(subject)) masked = masked.replaceAll(subject, "masked")
  return masked
}
