import { onlyAgents } from "../../agents/registry.ts"
import { why } from "../../answers/why.ts"
import { sectionsOf, shareText } from "../../answers/why-page.ts"
import { type Format, formatCount } from "../../core/format.ts"
import { hitRef } from "../../core/ref.ts"
import { isInTitle } from "../../core/suggestion.ts"
import type { InputOf, OutputOf, Tool } from "../../core/tool.ts"
import { clip, safe, safeLine } from "../../render/terminal.ts"
import { many } from "../../render/words.ts"
import type { Dex } from "../../tools/context.ts"
import { guide } from "../../tools/guide/guide.ts"
import { describeConversations, describeMatches, nounForRows, sizeOfRow } from "../../tools/kinds.ts"
import { list } from "../../tools/list/list.ts"
import { search } from "../../tools/search/search.ts"
import { timeline } from "../../tools/show/forms.ts"
import { show } from "../../tools/show/show.ts"
import { stats } from "../../tools/stats/stats.ts"
import { suggest } from "../../tools/suggest/suggest.ts"
import { callForCommand, commandsToCalls, formatCall } from "./calls.ts"
import { DEFAULT_TOKENS, type OfferedTool } from "./definitions.ts"

// The text forms of tools' outputs suit a model best: they are shorter than JSON, and end with possible next calls and their
// cost. Quoted text is indented, so that it cannot be mistaken for dex's own lines.

type OfferedTools = readonly OfferedTool[]

/** The text form of a tool's output. Undefined if the tool has none; then the output is sent as JSON. */
export function answerText(name: string, output: unknown, offered: OfferedTools, input: unknown): string | undefined {
  const lines = FORMS.get(name)?.(output, offered, input)
  return lines?.filter((line) => line !== undefined).join("\n")
}

type Line = string | undefined
type TextForm = (output: unknown, offered: OfferedTools, input: unknown) => Line[]
const FORMS = new Map([
  textForm(search, searchLines),
  textForm(list, listLines),
  textForm(show, getLines),
  textForm(timeline, timelineLines),
  textForm(suggest, suggestLines),
  textForm(stats, statsLines),
  textForm(guide, guideLines),
  textForm(why, whyLines),
])

/** Pairs a tool with its text form, so that the compiler checks that they match. */
function textForm<T extends Tool<Dex>>(
  tool: T,
  lines: (output: OutputOf<T>, offered: OfferedTools, input: InputOf<T>) => Line[],
): [string, TextForm] {
  return [tool.mcp!.name, lines as TextForm]
}

type SearchOutput = OutputOf<typeof search>
type ListOutput = OutputOf<typeof list>
type GetOutput = OutputOf<typeof show>
type Timeline = OutputOf<typeof timeline>
type SuggestOutput = OutputOf<typeof suggest>
type SuggestedItem = NonNullable<SuggestOutput["waiting"]>[number]["items"][number]
type ListedItem = Pick<SuggestedItem, "kind" | "title" | "summary" | "reason" | "ref" | "file"> & {
  number?: number
  relevance?: number
}
type Stats = OutputOf<typeof stats>
type Guide = OutputOf<typeof guide>
type WhyOutput = OutputOf<typeof why>
type Row = Pick<
  SearchOutput["results"][number],
  keyof ListOutput["conversations"][number] & keyof SearchOutput["results"][number]
>

/** The number of messages that dex_get returns for the ref of one message: two before it, itself, and two after it. */
const MESSAGES_PER_GET = 5

function searchLines(
  { results, pack, total, total_is_at_least, kinds, mode, degraded, notes }: SearchOutput,
  offered: OfferedTools,
): Line[] {
  const best = results[0]
  const remarks = [...notes, ...(degraded ?? [])].map((note) => `note: ${safeLine(commandsToCalls(note, offered))}`)
  if (pack && pack.passages.length > 0) return [...pack.text.split("\n"), ...remarks]
  if (!best)
    return [
      "Nothing found.",
      ...remarks,
      `next: fewer or other words; or browse: ${formatCall("dex_list", { from: "30d" })} ~1700 tokens`,
    ]
  const bestRef = hitRef(best)
  const noun = nounForRows(results)
  return [
    mode === "list"
      ? `${results.length} of ${total} conversations, newest first.`
      : `${(kinds && describeMatches(kinds, results.length, noun, total_is_at_least)) ?? `${many(results.length, noun)} shown`}.`,
    ...results.flatMap((hit) => [
      `${hitRef(hit)} ${headOf(hit)}`,
      ...(hit.snippet === "" ? [] : [`  ${safeLine(hit.snippet)}`]),
      `  ${hit.role ? `${hit.role} (${hit.origin}); ` : ""}${sizeOf(hit)}${hit.more_matches > 0 ? `, ${hit.more_matches} more matches` : ""}`,
    ]),
    ...remarks,
    `next: what happened around it: ${formatCall("dex_timeline", { id: bestRef })} at most ${DEFAULT_TOKENS.dex_timeline} tokens; its words: ${formatCall("dex_get", { ids: [bestRef] })} ~${aroundTokens(best)} tokens; all of it: ~${best.estimated_tokens} tokens`,
  ]
}

function whyLines({ commits, conversations, lines, unknown, notes }: WhyOutput, offered: OfferedTools): Line[] {
  const remarks = notes.map((note) => `note: ${safeLine(commandsToCalls(note, offered))}`)
  const [first] = conversations
  if (!first) return ["No conversation is known to have written this.", ...remarks]
  return [
    `${lines - unknown} of ${lines} lines are known.`,
    ...commits.map(({ hash, subject }) => `commit ${hash.slice(0, 10)}: ${safeLine(subject)}`),
    ...conversations.flatMap((one) => [
      `${one.ref} ${shareText(one, lines)}: ${safeLine(one.title)}`,
      ...sectionsOf(one).flatMap(({ title, rows }) => [
        `  ${title}`,
        ...rows.map(({ text, ref }) => `    ${text} ${ref.slice(ref.lastIndexOf("#"))}`),
      ]),
    ]),
    ...remarks,
    `next: the words around it: ${formatCall("dex_get", { ids: [first.asked.at(-1)?.ref ?? first.ref] })}`,
  ]
}

function aroundTokens({ message_count, estimated_tokens }: Row): number {
  return Math.ceil((estimated_tokens * Math.min(MESSAGES_PER_GET, message_count)) / Math.max(1, message_count))
}

function listLines(
  { collections, conversations, total, kinds, left_out, next_offset, continue_with }: ListOutput,
  offered: OfferedTools,
): Line[] {
  if (collections) return collectionLines(collections)
  const others = Object.entries(left_out).filter(([, count]) => count > 0)
  const [first] = conversations
  return [
    `${conversations.length} of ${kinds ? describeConversations(kinds) : `${total} ${nounForRows(conversations)}s`}, newest first.`,
    ...conversations.flatMap((row) => [
      `${row.id} ${headOf(row)}`,
      row.kind === "document"
        ? `  ${sizeOf(row)}`
        : `  ${sizeOf(row)}; +${row.lines_added} −${row.lines_removed} lines, ${row.files} files, ${row.commits} commits`,
    ]),
    others.length > 0
      ? `note: also ${others.map(([kind, count]) => `${count} ${kind}`).join(", ")}; all: true shows them`
      : undefined,
    continue_with !== undefined
      ? `next: ${callForCommand(continue_with, offered)}`
      : next_offset !== undefined
        ? `next: the same with offset: ${next_offset}`
        : undefined,
    first &&
      `next: read one: ${formatCall("dex_get", { ids: [first.id], format: "outline" })} or completely ~${first.estimated_tokens} tokens`,
  ]
}

function collectionLines(collections: NonNullable<ListOutput["collections"]>): Line[] {
  const [first] = collections
  return [
    `${collections.length} collections of documents.`,
    ...collections.map(
      ({ name, origin, project, documents, sections }) =>
        `${safeLine(name)} · ${safeLine(origin)} · ${project === undefined ? "for every project" : safeLine(project)} · ${documents} documents, ${sections} sections`,
    ),
    first &&
      `next: its documents: ${formatCall("dex_list", { collection: first.name })}; or dex_search with in: "docs"`,
  ]
}

type Head = Pick<Row, "id" | "title" | "project" | "date" | "kind" | "superseded"> & { source?: string }
function getLines(
  { conversations, left_out }: GetOutput,
  offered: OfferedTools,
  { format }: InputOf<typeof show>,
): Line[] {
  return [
    ...conversations.flatMap((one) => [
      `${one.id} ${headOf(one)}`,
      one.parent && `  subagent of ${one.parent}`,
      one.fork_of && `  fork of ${one.fork_of}`,
      one.archived ? "  the agent deleted its file; this is the only copy" : undefined,
      one.files.length > 0 ? filesLine(one.files, format) : undefined,
      ...one.messages.flatMap((message) =>
        format === "outline"
          ? [outlineLine(message)]
          : [
              `#${message.index} ${message.role} (${message.origin})${message.date ? ` ${message.date}` : ""}${message.state ? ` ${message.state}` : ""}`,
              indent(message.content),
              message.cut &&
                `note: ${message.cut.characters_left_out} characters of it left out; next: ${callForCommand(message.cut.continue_with, offered)}`,
            ],
      ),
      one.hidden_parts ? `note: ${one.hidden_parts} parts hidden by show and hide` : undefined,
      one.has_more_before || one.has_more_after
        ? `note: there is more ${[one.has_more_before && "before", one.has_more_after && "after"].filter(Boolean).join(" and ")}; expand.before and expand.after widen it`
        : undefined,
      one.truncated &&
        `note: ${one.truncated.messages_left_out} ${one.kind === "document" ? "sections" : "messages"} left out to stay within max_tokens; next: ${callForCommand(one.truncated.continue_with, offered)}`,
    ]),
    left_out &&
      `note: ${left_out.conversations} conversations left out to stay within max_tokens; next: ${callForCommand(left_out.continue_with, offered)}`,
  ]
}

const OUTLINE_FILES_CHARS = 120

/** An outline names only the first files; reading the conversation returns all of them. */
function filesLine(files: string[], format: Format): string {
  const names = files.map((file) => safeLine(file))
  const line = `  files: ${names.join(", ")}`
  return format === "outline" ? clip(line, OUTLINE_FILES_CHARS) : line
}

/** The usual origin of a message of each role. An outline names only other origins. */
const DEFAULT_ORIGINS: Record<string, string> = {
  user: "person",
  assistant: "agent",
  tool: "local_tool",
  document: "document",
}

/**
 * One line with the cost of reading the message. It begins with dex's own words, so that the message's text cannot be mistaken
 * for one of dex's own lines.
 */
function outlineLine({
  index,
  role,
  origin,
  tokens,
  state,
  content,
}: GetOutput["conversations"][number]["messages"][number]): string {
  const marks = [...(origin === DEFAULT_ORIGINS[role] || origin === "" ? [] : [origin]), ...(state ? [state] : [])]
  const suffix = marks.length === 0 ? "" : ` (${marks.join("; ")})`
  return `#${index} ${role}${suffix} ~${formatCount(tokens)}: ${safeLine(content)}`
}

function timelineLines(output: Timeline, offered: OfferedTools): Line[] {
  const { truncated, has_more_before, has_more_after } = output
  return [
    `${output.id} ${headOf(output)}`,
    ...(output.others ?? []).map(({ id, title }) => `  with ${id} ${safeLine(title)}`),
    ...output.lines.map((line) => safeLine(line)),
    output.hidden_parts ? `note: ${output.hidden_parts} parts hidden by show and hide` : undefined,
    truncated && `note: ${truncated.messages_left_out} messages left out to stay within max_tokens`,
    truncated?.continue_before && `next: before: ${callForCommand(truncated.continue_before, offered)}`,
    truncated?.continue_with && `next: after: ${callForCommand(truncated.continue_with, offered)}`,
    !truncated && (has_more_before || has_more_after)
      ? `note: there is more ${[has_more_before && "before", has_more_after && "after"].filter(Boolean).join(" and ")}; before and after widen it`
      : undefined,
    `next: read messages in full: ${formatCall("dex_get", { ids: [`${output.id}#${output.message_index}`] })}; ~ in a line is what reading that message takes`,
  ]
}

function suggestLines({ id, suggestions, waiting = [], notes }: SuggestOutput, offered: OfferedTools): Line[] {
  const remarks = notes.map((note) => `note: ${safeLine(commandsToCalls(note, offered))}`)
  const [first] = suggestions.length > 0 ? [{ id, items: suggestions }] : waiting
  if (!first) return ["No suggestions here.", ...remarks, `next: by words: ${formatCall("dex_search", { query: "…" })}`]
  const refs = [...suggestions, ...waiting.flatMap(({ items }) => items)].map(({ ref }) => ref)
  // Commits are left out, because dex_get does not show them.
  const ref = refs.find((one) => one !== undefined && !one.startsWith("git:"))
  const head = suggestions.length === 1 ? "1 suggestion." : `${suggestions.length} suggestions.`
  return [
    suggestions.length > 0 ? head : undefined,
    ...suggestions.flatMap(itemLines),
    ...waiting.flatMap((one) => [
      `For subscription ${one.subscription ?? "?"}, as suggestion ${one.id}:`,
      ...one.items.flatMap(itemLines),
    ]),
    ...remarks,
    ref && `next: read one: ${formatCall("dex_get", { ids: [ref] })}`,
    `next: used or dismissed: ${formatCall("suggestion_feedback", { id: first.id, verdict: "used", item: 1 })}`,
  ]
}

function itemLines({ number, kind, title, summary, reason, relevance, ref, file }: ListedItem, i: number): Line[] {
  const facts = [
    relevance === undefined ? undefined : `${Math.round(relevance * 100)} % likely`,
    file === undefined || title.includes(file) ? undefined : `about ${safeLine(file)}`,
    ref === undefined ? undefined : `ref ${safeLine(ref)}`,
  ].filter((fact) => fact !== undefined)
  return [
    `${number ?? i + 1} ${kind}: ${safeLine(title)}`,
    isInTitle({ title, summary }) ? undefined : indent(summary),
    `  why: ${safeLine(reason)}`,
    facts.length === 0 ? undefined : `  ${facts.join("; ")}`,
  ]
}

function statsLines(stats: Stats): Line[] {
  const formatCounts = (counts: Record<string, number>) =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ")
  return [
    `${describeConversations(stats.kinds)}, ${stats.total_messages} messages, ${stats.date_range.earliest ?? "?"} to ${stats.date_range.latest ?? "?"}`,
    `agents: ${formatCounts(onlyAgents(stats.sources))}`,
    `by whom: ${formatCounts(stats.kinds)}`,
    stats.projects.length > 0 ? `busiest projects: ${stats.projects.map(safeLine).join(", ")}` : undefined,
    `a conversation takes ~${stats.avg_tokens_per_conversation} tokens to read completely, on average`,
    stats.session_id && `this session: ${stats.session_id}`,
    stats.sync && `note: ${stats.sync.done} of ${stats.sync.total} transcripts read so far`,
    `next: ${formatCall("dex_search", { query: "…" })} ~1500 tokens`,
  ]
}

function guideLines({ steps, rules }: Guide): Line[] {
  return [
    ...steps.map(({ tool, use, typical_tokens }) => `${tool} (~${typical_tokens} tokens): ${use}`),
    ...rules.map((rule) => `- ${rule}`),
  ]
}

function headOf({ title, project, source, date, kind, superseded }: Head): string {
  const state = superseded ? "superseded" : ""
  return [
    `"${safeLine(title)}"`,
    source,
    safeLine(project),
    date,
    kind === "person" || kind === "document" ? "" : kind,
    state,
  ]
    .filter(Boolean)
    .join(" · ")
}

function sizeOf(row: Row): string {
  return `${sizeOfRow(row)}, ~${row.estimated_tokens} tokens`
}

function indent(text: string): string {
  return safe(text)
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n")
}
