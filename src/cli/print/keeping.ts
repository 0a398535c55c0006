import { onlyAgents } from "../../agents/registry.ts"
import { formatCount, grouped, joinNames } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { clip, padEnd, paint, safeLine, wrap, wrapAfter, wrapLine } from "../../render/terminal.ts"
import { many, megabytes, projectName, seconds, shortPath, when } from "../../render/words.ts"
import type { doctor, secrets } from "../../tools/doctor/doctor.ts"
import type { forget, makePrivate } from "../../tools/forget/forget.ts"
import type { gc } from "../../tools/gc/gc.ts"
import { describeConversations, describeOtherKinds } from "../../tools/kinds.ts"
import type { mute } from "../../tools/mute/mute.ts"
import type { sources } from "../../tools/sources/sources.ts"
import type { stats } from "../../tools/stats/stats.ts"
import type { reindex, sync } from "../../tools/sync/sync.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"
import { asTyped, factsWithRef, shellQuote } from "./words.ts"

type StatsOutput = OutputOf<typeof stats>

export function printStats(output: StatsOutput, context: PrintContext): PrintedOutput {
  const { terminal, home } = context
  if (Object.keys(output.kinds).length === 0)
    return { lines: [], notes: ["No conversations have been read yet. Run `dex sync` first."] }
  const label = (name: string) => paint(terminal, "cyan", padEnd(name, 15))
  const fact = (name: string, text: string) =>
    terminal.interactive ? wrapAfter(label(name), text, terminal.columns) : [label(name) + text]
  const counts = (countByName: Record<string, number>) =>
    Object.entries(countByName)
      .map(([name, count]) => `${name} ${grouped(count)}`)
      .join(", ")
  const others = describeOtherKinds(output.kinds)
  const agents = onlyAgents(output.sources)
  const total = Object.values(agents).reduce((sum, count) => sum + count, 0)
  const lines = [
    `${label("conversations")}${grouped(output.total_conversations)}${others === "" ? "" : ` (and ${others})`}`,
    `${label("messages")}${grouped(output.total_messages)}`,
    ...fact("from, to", `${when(output.date_range.earliest)}, ${when(output.date_range.latest)}`),
    ...fact(
      "agents",
      `${counts(agents)}${total === output.total_conversations ? "" : " (with subagents and automated runs)"}`,
    ),
    ...fact("run by", counts(output.kinds)),
    ...fact("average size", `${formatCount(output.avg_tokens_per_conversation)} tokens (stripped, estimated)`),
    `${label("text, disk")}${megabytes(output.text_bytes)}, ${megabytes(output.disk_bytes ?? 0)}`,
  ]
  if (output.session_id) lines.push(`${label("this session")}${output.session_id}`)
  for (const [i, project] of output.projects.entries()) {
    lines.push(`${label(i === 0 ? "projects" : "")}${clip(shortPath(safeLine(project), home), terminal.columns - 15)}`)
  }
  const notes = output.sync
    ? [
        `${grouped(output.sync.done)} of ${grouped(output.sync.total)} transcripts read so far. \`dex sync\` reads the rest.`,
      ]
    : []
  return { lines, notes }
}

export type SyncOutput = OutputOf<typeof sync>

type Embedding = NonNullable<SyncOutput["embedding"]>

function embeddingNotes({ embedder, embedded, left, duration_ms, problem }: Embedding): string[] {
  const by = `by ${safeLine(embedder)} in ${seconds(duration_ms)}`
  return [
    ...(embedded > 0 ? [`${many(embedded, "message")} embedded ${by}.`] : []),
    ...(problem === undefined ? [] : [problem]),
    ...(left > 0
      ? [`${many(left, "message")} not embedded yet: the next \`dex sync\` continues. Search by words finds them.`]
      : []),
  ]
}

export function printSync(output: SyncOutput, { home }: PrintContext): PrintedOutput {
  if (output.busy)
    return {
      lines: [],
      notes: ["Another dex process is syncing right now, so this one read nothing. `dex doctor` shows its progress."],
    }
  const rate = output.bytes > 1e6 ? `, ${(output.bytes / 1e6 / (output.duration_ms / 1000)).toFixed(0)} MB/s` : ""
  const lines = [
    output.read === 0
      ? `Nothing new in ${many(output.found, "transcript")} (${seconds(output.duration_ms)}).`
      : `Read ${many(output.read, "transcript")} of ${grouped(output.found)}: ${many(output.added_messages, "new message")} in ${seconds(output.duration_ms)}${rate}.`,
    ...(Object.keys(output.kinds).length > 0 ? [`In total, dex has ${describeConversations(output.kinds)}.`] : []),
  ]
  const notes: string[] = []
  if (output.archived > 0)
    notes.push(
      `${many(output.archived, "transcript was", "transcripts were")} deleted from the agents' folders. dex keeps a copy of each.`,
    )
  if (output.read_again > 0)
    notes.push(
      `${many(output.read_again, "transcript was", "transcripts were")} read again, because this version of dex stores more details, such as the cost of answers.`,
    )
  if (!output.complete) notes.push("Not everything is read yet. `dex sync` continues where this one stopped.")
  for (const file of output.unreadable.slice(0, 5))
    notes.push(`Unreadable: ${shortPath(file.path, home)} (${safeLine(file.reason)})`)
  if (output.unreadable.length > 5)
    notes.push(`… and ${output.unreadable.length - 5} more unreadable. \`dex doctor sources\` lists them.`)
  if (output.restored.length > 0)
    notes.push(`Restored what was damaged in history.db: ${output.restored.map(safeLine).join(", ")}.`)
  if (output.damaged.length > 0)
    notes.push(
      `Damaged in history.db: ${output.damaged.map(safeLine).join(", ")}. \`dex doctor\` shows what is lost and what to do.`,
    )
  if (output.embedding) notes.push(...embeddingNotes(output.embedding))
  return { lines, notes }
}

type SourcesOutput = OutputOf<typeof sources>

export function printSources(output: SourcesOutput, { terminal, home }: PrintContext): PrintedOutput {
  const isFound = (source: SourceFound) =>
    source.is_there || source.found + source.kept > 0 || source.unreadable.length > 0
  const lines = output.sources.filter(isFound).flatMap((source) => foundLines(source, terminal, home))
  const others = output.sources.filter((source) => !isFound(source))
  if (others.length > 0) lines.push("Not found:")
  for (const { source, looked_in } of others) {
    const [first = "read from an export: dex import FILE", ...rest] = looked_in.map((path) => shortPath(path, home))
    const moreText = rest.length > 0 ? `, and ${many(rest.length, "other place")}` : ""
    lines.push(paint(terminal, "dim", clip(`  ${padEnd(source, 18)}${first}${moreText}`, terminal.columns)))
  }
  return { lines: [...lines, ...output.unread.map((store) => unreadLine(store, home))] }
}

/** The line for a store that dex found but has not read. */
function unreadLine({ name, path, files, why }: SourcesOutput["unread"][number], home: string): string {
  const reason = why === undefined ? "not read yet" : `cannot be read: ${safeLine(why)}`
  return `found ${safeLine(name)} in ${shortPath(safeLine(path), home)}, ${many(files, "file")}, ${reason}`
}

type SourceFound = SourcesOutput["sources"][number]

function foundLines(source: SourceFound, terminal: PrintContext["terminal"], home: string): string[] {
  const hasHistory = source.found + source.kept > 0
  const lines = [
    `${paint(terminal, "bold", source.source)}${hasHistory ? "" : paint(terminal, "dim", "  nothing read yet")}`,
  ]
  if (source.basis === "description")
    lines.push(
      paint(terminal, "dim", `  ${safeLine(source.name)} is read according to its documentation; this was not tested`),
    )
  if (hasHistory) {
    const archived = source.archived > 0 ? `, ${grouped(source.archived)} of them only in dex` : ""
    lines.push(
      `  ${describeConversations(source.kinds)}, ${many(source.messages, "message")}${archived}; latest ${when(source.latest)}`,
    )
  }
  const searchedPlaces =
    source.looked_in.length > 0
      ? `looked in ${source.looked_in.map((path) => shortPath(path, home)).join(", ")}`
      : "imported from an export"
  lines.push(
    ...wrap(searchedPlaces, terminal.columns - 2).map((line) => `  ${paint(terminal, "dim", line)}`),
    ...countLines("skipped", source.skipped),
    ...countLines("unknown types", source.unknown),
    ...countLines("redacted", source.redactions),
  )
  for (const { path, tables } of source.unknown_tables ?? [])
    lines.push(...countLines(`tables of ${shortPath(safeLine(path), home)} that dex does not read, rows`, tables))
  for (const file of source.unreadable.slice(0, 10))
    lines.push(`  unreadable: ${shortPath(safeLine(file.path), home)} (${safeLine(file.reason)})`)
  if (source.unreadable.length > 10)
    lines.push(`  … and ${source.unreadable.length - 10} more unreadable (--json lists them)`)
  return lines
}

function countLines(label: string, counts: Record<string, number>): string[] {
  const entries = Object.entries(counts).sort(([, a], [, b]) => b - a)
  if (entries.length === 0) return []
  const topCounts = entries.slice(0, 6).map(([name, count]) => `${grouped(count)} × ${safeLine(name)}`)
  return [`  ${label}: ${topCounts.join(", ")}${entries.length > 6 ? `, and ${entries.length - 6} more` : ""}`]
}

const MAX_FILES = 20

export function printSecrets(output: OutputOf<typeof secrets>, { terminal, home }: PrintContext): PrintedOutput {
  const { files, in_private_projects: hidden } = output
  const notes =
    hidden === 0 ? [] : [`${many(hidden, "more secret")} in private projects, not shown. Run dex inside their folders.`]
  if (files.length === 0)
    return { lines: [], notes: notes.length > 0 ? notes : ["dex found no secrets in the files that it has read."] }
  const present = files.filter(({ state }) => state === "present")
  const lines = [
    present.length === 0
      ? "No secrets in files that still exist."
      : `${many(output.secrets, "secret")} in ${many(present.length, "file")}:`,
    ...countLines("in all", output.kinds).flatMap((line) => wrapLine(line, terminal.columns)),
  ]
  for (const { source, path, state, kinds } of files.slice(0, MAX_FILES)) {
    const stateText = { present: "", gone: ", gone", other_machine: ", on another machine" }[state]
    lines.push(paint(terminal, state === "present" ? "bold" : "dim", safeLine(shortPath(path, home))))
    lines.push(...countLines(`${source}${stateText}`, kinds).flatMap((line) => wrapLine(line, terminal.columns)))
  }
  if (files.length > MAX_FILES) lines.push(`… and ${many(files.length - MAX_FILES, "more file")} (--json lists them)`)
  if (present.length > 0)
    notes.unshift(
      "Replace these secrets where they were issued: whoever can read the files knows them, and so does the model's provider.",
      "Then delete the files, or the conversations in their agents. dex keeps the conversations, without the secrets.",
    )
  return { lines, notes }
}

type DoctorOutput = OutputOf<typeof doctor>

export function printDoctor(output: DoctorOutput, { terminal }: PrintContext): PrintedOutput {
  const marks = {
    ok: paint(terminal, "green", "ok     "),
    note: paint(terminal, "yellow", "note   "),
    problem: paint(terminal, "red", "problem"),
  }
  const lines = output.checks.flatMap((check) => {
    const [first = "", ...rest] = wrap(
      `${check.name}: ${asTyped(safeLine(check.message), terminal)}`,
      terminal.columns - 9,
    )
    const lines = [`${marks[check.status]}  ${first}`, ...rest.map((line) => `         ${line}`)]
    if (check.mend) lines.push(`         → ${paint(terminal, "cyan", asTyped(check.mend, terminal))}`)
    return lines
  })
  return { lines, notes: output.repaired && repairNotes(output.repaired) }
}

function repairNotes({ kept_as, rows, restored, damaged }: NonNullable<DoctorOutput["repaired"]>): string[] {
  const notes: string[] = []
  if (kept_as !== undefined)
    notes.push(
      `Created a new history.db with ${many(rows ?? 0, "row")}. The damaged file was kept as ${safeLine(kept_as)}`,
    )
  if (restored.length > 0) notes.push(`Restored: ${restored.map(safeLine).join(", ")}.`)
  if (damaged.length > 0) notes.push(`Could not be fully restored: ${damaged.map(safeLine).join(", ")}.`)
  return notes.length > 0 ? notes : ["Nothing was damaged."]
}

type ForgetOutput = OutputOf<typeof forget>

function pinnedNote(pinned: string[]): string {
  return `Another program still reads old pages of ${joinNames(pinned)}, so the forgotten text stays in the file until that program is done. The next \`dex sync\` or \`dex doctor gc\` after that removes it.`
}

/**
 * The conversations that would be deleted, and others that would keep copies of their messages. Shows titles, because
 * nobody recognises a ref.
 */
export function conversationsToForget(output: ForgetOutput, columns: number): string[] {
  const { forgotten, kept_copies: copies = [] } = output
  if (copies.length === 0) return linesForRefs(output, forgotten, columns)
  return [...linesForRefs(output, forgotten, columns), "", copiesNote(output), ...linesForRefs(output, copies, columns)]
}

function copiesNote({ kept_copies = [] }: ForgetOutput): string {
  return kept_copies.length === 1
    ? "Not deleted: another conversation, in which copies of the same messages stay readable:"
    : `Not deleted: ${many(kept_copies.length, "other conversation")}, in which copies of the same messages stay readable:`
}

function linesForRefs({ conversations = [] }: ForgetOutput, refs: string[], columns: number): string[] {
  const byRef = new Map(conversations.map((row) => [row.id, row]))
  return refs.flatMap((ref) => {
    const row = byRef.get(ref)
    if (!row) return [`  ${ref}`]
    const kind = row.kind === "person" ? "" : ` (${row.kind})`
    const facts = [row.source, projectName(safeLine(row.project)), when(row.date), many(row.message_count, "message")]
    return [
      `  ${clip(safeLine(row.title), columns - 2 - kind.length)}${kind}`,
      ...factsWithRef(facts, ref, columns - 4).map((line) => `    ${line}`),
    ]
  })
}

export function printForget(output: ForgetOutput, { terminal, home }: PrintContext): PrintedOutput {
  if (output.asked) {
    return {
      lines: conversationsToForget(output, terminal.columns),
      problem: `This would permanently delete ${many(output.count, "conversation")}, with subagents. Nothing was deleted, because dex cannot ask for confirmation without a terminal. Add --yes${output.kept_copies ? ", or --yes --copies to delete those with copies too" : ""}.`,
    }
  }
  return {
    lines: [...output.forgotten.map((ref) => `forgotten: ${ref}`), ...keptLines(output, terminal.columns)],
    notes: [
      output.pinned
        ? `They are no longer found or shown, and are never read again. ${NOT_TOUCHED_NOTE} ${pinnedNote(output.pinned)}`
        : `Deleted from the history and the index, and never read again. ${NOT_TOUCHED_NOTE}`,
      ...(output.still_there ?? []).map(({ file, why }) => {
        const name = safeLine(shortPath(file, home))
        return `${name} may still contain the deleted text, and was not changed (${safeLine(why)}). If you do not need this file: rm ${name}`
      }),
    ],
  }
}

const NOT_TOUCHED_NOTE = "The agents' own files and your backups were not touched."

function keptLines(output: ForgetOutput, columns: number): string[] {
  const { kept_copies: copies = [] } = output
  if (copies.length === 0) return []
  const note = `${copiesNote(output).slice(0, -1)}. To delete ${copies.length === 1 ? "it" : "them"} too, run \`dex forget\` on ${copies.length === 1 ? "it" : "each"}:`
  return ["", ...wrap(note, columns), ...linesForRefs(output, copies, columns)]
}

export function printPrivate(output: OutputOf<typeof makePrivate>, { home }: PrintContext): PrintedOutput {
  const displayPath = (path: string) => safeLine(shortPath(path, home))
  const { project, projects, below = [] } = output
  if (project === undefined)
    return projects.length > 0
      ? {
          lines: projects.map(displayPath),
          notes: ["Private projects are shown only inside their folders. To undo this: dex private <folder> --off"],
        }
      : { lines: [], notes: ["No project is private. To make one private: dex private <folder>"] }
  const others = below.filter((path) => projects.includes(path) !== output.private)
  const verbPhrase = others.length === 1 ? "is a project of its own" : "are projects of their own"
  return {
    lines: [
      output.private
        ? `${displayPath(project)} is private: it is shown only inside that project.`
        : `${displayPath(project)} is no longer private.`,
    ],
    notes: [
      ...(others.length > 0
        ? [
            `In nested folders, ${joinNames(others.map(displayPath))} ${verbPhrase}, and not ${output.private ? "private" : "changed"}.`,
          ]
        : []),
      ...(projects.length > 0 ? [`Private projects: ${projects.map(displayPath).join(", ")}`] : []),
    ],
  }
}

type MuteOutput = OutputOf<typeof mute>

export function printMute({ changed, name, mutes }: MuteOutput, { home }: PrintContext): PrintedOutput {
  const displayPath = (path: string) => safeLine(shortPath(path, home))
  const undo = (target: string) =>
    `To turn ${target === "<name>" ? "one" : "it"} on again: dex suggest --mute ${target} --off`
  if (name === undefined) {
    const [first, second] = mutes
    if (!first)
      return {
        lines: [],
        notes: [
          "Nothing is muted. To mute one kind: dex suggest --mute related_code; this project: dex suggest --mute .; everything: dex config set proactive.enabled false",
        ],
      }
    return {
      lines: mutes.map((mute) => `${mute.type.padEnd(9)}${displayPath(mute.name)}  since ${mute.since.slice(0, 10)}`),
      notes: [undo(second ? "<name>" : shellQuote(displayPath(first.name)))],
    }
  }
  if (mutes.some((mute) => mute.name === name))
    return {
      lines: [`${displayPath(name)} is ${changed ? "now" : "already"} muted.`],
      notes: [undo(shellQuote(displayPath(name)))],
    }
  return { lines: [`${displayPath(name)} ${changed ? "is on again" : "was not muted"}.`], notes: [] }
}

type ReindexOutput = OutputOf<typeof reindex>

export function printReindex(output: ReindexOutput): PrintedOutput {
  return {
    lines: [`Indexed ${describeConversations(output.kinds)} in ${seconds(output.duration_ms)}.`],
    notes: output.embedding ? embeddingNotes(output.embedding) : [],
  }
}

type GcOutput = OutputOf<typeof gc>

export function printGc(output: GcOutput): PrintedOutput {
  const freedBytes = output.bytes_before - output.bytes_after
  const size = `the index is now ${megabytes(output.bytes_after)}`
  const lines = [
    freedBytes > 0
      ? `Freed ${megabytes(freedBytes)} in ${seconds(output.duration_ms)}; ${size}.`
      : `Nothing to free (${seconds(output.duration_ms)}); ${size}.`,
    ...output.dropped.map(({ embedder, vectors }) => `Dropped ${many(vectors, "vector")} of ${safeLine(embedder)}.`),
  ]
  if (output.compacted > 0) lines.push(`Freed the space of ${many(output.compacted, "deleted vector")}.`)
  const notes = [
    ...(output.note === undefined ? [] : [output.note]),
    ...(output.pinned ? [pinnedNote(output.pinned)] : []),
  ]
  return { lines, notes }
}
