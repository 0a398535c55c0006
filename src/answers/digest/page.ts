import { parseCompleteRef, sourceWithOwner } from "../../core/ref.ts"
import { safeLine } from "../../render/terminal.ts"
import { many, projectName } from "../../render/words.ts"
import type { ProjectFacts } from "./facts.ts"
import type { WorkTopic } from "./topics.ts"

const MAX_LINE_CHARS = 100

/** The facts as Markdown. Each text from a transcript is on one line, without control characters. */
export function factsPage(projects: ProjectFacts[]): string[] {
  return projects.flatMap((facts) => [
    `## ${repositoryName(facts)}`,
    "",
    headCounts(facts),
    "",
    ...topicSections(facts),
    ...section("Also worked on", [
      ...otherWork(facts).map(
        ({ title, messages, id }) => `${clipLine(title)} (${many(messages, "message")}, ${shortRef(id)})`,
      ),
      ...(facts.other_conversations > 0 ? [`${facts.other_conversations} more by subagents and scripts`] : []),
    ]),
    ...section(
      "Left open: commands that failed and did not pass afterwards",
      facts.failed_commands.map(
        ({ command, error, times, ref }) =>
          `${clipLine(command)}${times > 1 ? `, ${times} times` : ""} (${shortRef(ref)})${error ? `: ${clipLine(error)}` : ""}`,
      ),
      facts.failed_commands_total,
    ),
    ...section(
      `Files changed: ${facts.files_total}${facts.plan_files > 0 ? ` (plus ${many(facts.plan_files, "plan file")} that agents wrote for themselves)` : ""}`,
      facts.files.map(({ path, added, removed }) => `${safeLine(path)} +${added} -${removed}`),
      facts.files_total,
    ),
  ])
}

/** A section for each topic with something to show for it, and one for the decisions that belong to none. */
function topicSections(facts: ProjectFacts): string[] {
  const older = facts.decisions_total - facts.decisions.length
  return [
    ...finishedTopics(facts).flatMap(({ topic, place }) =>
      section(`${topicTitle(topic)} (${shortRef(topic.ref)})`, [
        ...topic.pull_requests.map(safeLine),
        ...facts.commits
          .filter((one) => one.topic === place)
          .map(({ hash, subject }) => `${safeLine(hash)} ${clipLine(subject)}`),
        ...decisionsOf(facts, place).map(decisionLine),
      ]),
    ),
    ...section("Also decided", decisionsOf(facts).map(decisionLine)),
    ...(older > 0 ? [`… and ${many(older, "older decision")}`, ""] : []),
  ]
}

type Decision = ProjectFacts["decisions"][number]

const decisionLine = (decision: Decision) => `Decided: ${clipLine(decisionText(decision))} (${shortRef(decision.ref)})`

/** The first line of a decision. Of a question and its answer, the answer comes first. */
export function decisionText({ quote, kind, superseded_by }: Decision): string {
  const [line = ""] = quote.replace(/^#+\s*/, "").split("\n", 1)
  const [question, answer] = kind === "answer" ? line.split(" → ", 2) : []
  return `${superseded_by ? "(superseded) " : ""}${answer ? `${answer} (${question})` : line}`
}

/** The decisions about a topic, or about none. A plan that only repeats the topic's title says nothing more. */
export function decisionsOf(facts: ProjectFacts, place?: number): Decision[] {
  const { topics, decisions } = facts
  return decisions.filter(
    (one) => one.topic === place && (one.topic === undefined || decisionText(one) !== topics[one.topic]!.title),
  )
}

/** How many decisions there are to show. */
export function countDecisions({ topics, decisions, decisions_total }: ProjectFacts): number {
  const repeated = decisions.filter((one) => one.topic !== undefined && decisionText(one) === topics[one.topic]!.title)
  return decisions_total - repeated.length
}

/** The topics with a pull request, a commit or a decision, and their places in the list of all. */
export function finishedTopics({ topics, commits, decisions }: ProjectFacts): { topic: WorkTopic; place: number }[] {
  const places = new Set([...commits, ...decisions].map((one) => one.topic))
  return topics.flatMap((topic, place) => (topic.pull_requests.length > 0 || places.has(place) ? { topic, place } : []))
}

/** The conversations of all other topics, the longest first. */
export function otherWork(facts: ProjectFacts): ProjectFacts["conversations"] {
  const places = new Set<number | undefined>(finishedTopics(facts).map(({ place }) => place))
  return facts.conversations.filter(({ topic }) => !places.has(topic)).sort((a, b) => b.messages - a.messages)
}

/** The title, after the numbers of its pull requests, which a narrow screen must not cut off: `#12, #15 Keep one queue`. */
export function topicTitle({ title, pull_requests }: WorkTopic): string {
  const numbers = pull_requests.map((url) => `#${/(\d+)\D*$/.exec(url)?.[1] ?? "?"}`)
  return `${numbers.join(", ")} ${safeLine(title)}`.trim()
}

/** `ann/api` for a repository. Otherwise the folder, or the name that the caller prefers. */
export function repositoryName({ project, repository }: ProjectFacts, folderName = projectName): string {
  return safeLine(repository?.slice(repository.indexOf("/") + 1) ?? folderName(project)) || "no project"
}

export function headCounts(facts: ProjectFacts): string {
  const { topics, decisions_total, commits, conversations, other_conversations, failed_commands_total, folders } = facts
  const pullRequests = new Set(topics.flatMap(({ pull_requests }) => pull_requests)).size
  return [
    ...(pullRequests > 0 ? [many(pullRequests, "pull request")] : []),
    ...(commits.length > 0 ? [many(commits.length, "commit")] : []),
    ...(decisions_total > 0 ? [many(decisions_total, "decision")] : []),
    many(conversations.length, "conversation"),
    ...(failed_commands_total > 0 ? [`${failed_commands_total} left open`] : []),
    ...(folders ? [`in ${folders.length} folders`] : []),
    ...(other_conversations > 0 ? [`${other_conversations} more by subagents or scripts`] : []),
  ].join(", ")
}

const RANDOM_ID = /^[0-9a-f]{8}(?=-[0-9a-f]{4}-4)/
/** The first half of a UUID of this kind is the time, so its beginning is not unique. */
const TIMED_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}/

/** A ref with as much of the id as identifies it: `claude_code:1f3c2a77#12`. `dex show` takes it. */
export function shortRef(text: string): string {
  const ref = parseCompleteRef(text)
  if (ref === undefined) return safeLine(text)
  const id = (RANDOM_ID.exec(ref.id) ?? TIMED_ID.exec(ref.id))?.[0]
  return safeLine(
    id === undefined ? text : `${sourceWithOwner(ref)}:${id}${ref.number === undefined ? "" : `#${ref.number}`}`,
  )
}

function section(title: string, rows: string[], total = rows.length): string[] {
  if (rows.length === 0) return []
  const more = total > rows.length ? [`- … and ${total - rows.length} more`] : []
  return [`### ${title}`, "", ...rows.map((row) => `- ${row}`), ...more, ""]
}

function clipLine(text: string): string {
  const line = safeLine(text)
  return line.length > MAX_LINE_CHARS ? `${line.slice(0, MAX_LINE_CHARS)}…` : line
}
