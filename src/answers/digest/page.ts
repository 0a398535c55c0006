import { safeLine } from "../../render/terminal.ts"
import { many } from "../../render/words.ts"
import type { ProjectFacts } from "./facts.ts"

const MAX_LINE_CHARS = 100

/** The facts as Markdown. Each text from a transcript is on one line, without control characters. */
export function factsPage(projects: ProjectFacts[]): string[] {
  return projects.flatMap((facts) => [
    `## ${safeLine(facts.project) || "no project"}`,
    "",
    ...facts.conversations.map(
      ({ id, title, messages }) =>
        `- ${safeLine(title).slice(0, MAX_LINE_CHARS)} (${many(messages, "message")}, ${safeLine(id)})`,
    ),
    ...(facts.other_conversations > 0 ? [`- ${facts.other_conversations} more by subagents and scripts`] : []),
    "",
    ...section(
      "Decided",
      facts.decisions.map(
        ({ quote, ref, superseded_by }) =>
          `- ${clipLine(quote)}${superseded_by ? ", superseded" : ""} (${safeLine(ref)})`,
      ),
      facts.decisions_total,
    ),
    ...section(
      "Commits",
      facts.commits.map(({ hash, subject, ref }) => `- ${safeLine(hash)} ${safeLine(subject)} (${safeLine(ref)})`),
    ),
    ...section(
      `Files changed: ${facts.files_total}${facts.plan_files > 0 ? ` (plus ${many(facts.plan_files, "plan file")} that agents wrote for themselves)` : ""}`,
      facts.files.map(({ path, added, removed }) => `- ${safeLine(path)} +${added} -${removed}`),
      facts.files_total,
    ),
    ...section(
      "Left open: commands that failed and did not pass afterwards",
      facts.failed_commands.map(
        ({ command, error, times, ref }) =>
          `- ${clipLine(command)}${times > 1 ? `, ${times} times` : ""} (${safeLine(ref)})${error ? `: ${clipLine(error)}` : ""}`,
      ),
      facts.failed_commands_total,
    ),
  ])
}

function section(title: string, lines: string[], total = lines.length): string[] {
  if (lines.length === 0) return []
  return [`### ${title}`, "", ...lines, ...(total > lines.length ? [`- … and ${total - lines.length} more`] : []), ""]
}

function clipLine(text: string): string {
  const line = safeLine(text)
  return line.length > MAX_LINE_CHARS ? `${line.slice(0, MAX_LINE_CHARS)}…` : line
}
