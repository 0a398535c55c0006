import { agentOf } from "../../agents/registry.ts"
import { LISTED_KINDS, type Part } from "../../core/conversation.ts"
import { DAY_MS, localMinute } from "../../core/dates.ts"
import { formatRef, parseCompleteRef } from "../../core/ref.ts"
import type { OutputOf } from "../../core/tool.ts"
import { readMessages } from "../../render/message-lines.ts"
import type { Screen } from "../../render/screen.ts"
import { many, markedTitle, projectName } from "../../render/words.ts"
import { searchAsYouType, type TypedSearchCache } from "../../search/typing.ts"
import type { ConversationRow, StoredMessage, Work } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { describeOtherKinds } from "../../tools/kinds.ts"
import { correctionNote } from "../../tools/search/forgiving.ts"
import { run as runSearch } from "../../tools/search/run.ts"
import type { search } from "../../tools/search/search.ts"
import { isUnreadNote } from "../../tools/unread.ts"
import { readableMessage } from "../print/conversation-lines.ts"
import { type FoundRows, newestRows } from "./newest-rows.ts"
import type { Preview } from "./screen.ts"
import type { RowQuery } from "./start-look-up.ts"
import type { PickerFilter, PickerRow } from "./state.ts"

/** Finds rows fast enough for each key press: the newest conversations, or the newest ones that contain the typed words. */
export async function findQuickRows(
  dex: Dex,
  { text, filter, limit }: RowQuery,
  cache: TypedSearchCache,
): Promise<FoundRows> {
  if (text === "") return newestRows(dex, filter, limit)
  const matches = await searchAsYouType(
    await dex.store(),
    await dex.index(),
    {
      text,
      sources: filter.source === undefined ? undefined : [filter.source],
      project: filter.scope === "all" ? undefined : dex.project,
      after: filter.days === undefined ? undefined : dex.now() - filter.days * DAY_MS,
      inside: dex.project,
      limit: MAX_TYPED_ROWS,
    },
    cache,
  )
  const isInScope = await scopeTest(dex, filter)
  const rows = matches
    .filter(({ ref, project }) => isInScope(formatRef(ref), project))
    .map(({ ref, project = "", snippet, ...row }) => ({
      ...row,
      ref: formatRef(ref),
      project,
      snippet,
    }))
  return { rows, hasMore: matches.length === MAX_TYPED_ROWS, note: "" }
}

/** How many rows to find: about a screenful, so that the search ends before the next key press. */
const MAX_TYPED_ROWS = 20

/** Enough for a line of the widest screens. */
const SNIPPET_CHARS = 200

/** The results of the full search, in its order. Kinds of conversations that the picker does not list are counted in a note. */
export async function findRankedRows(dex: Dex, { text, filter, limit }: RowQuery): Promise<FoundRows> {
  const input = {
    query: text,
    in: "history" as const,
    by: "conversation" as const,
    explain: false,
    limit,
    offset: 0,
    source: filter.source,
    project: filter.scope === "all" ? undefined : dex.project,
    from: filter.days === undefined ? undefined : `${filter.days}d`,
  }
  const output: OutputOf<typeof search> = await runSearch(dex, input, { minSnippet: SNIPPET_CHARS })
  const isInScope = await scopeTest(dex, filter)
  const results = output.results.filter(({ id, parent, project }) => isInScope(parent ?? id, project))
  const rows = results
    .filter(({ kind, parent }) => parent !== undefined || LISTED_KINDS.some((listedKind) => listedKind === kind))
    .map(({ id, parent, title, tags, date, source, project, snippet, message_index }) => ({
      ref: id,
      parent,
      title,
      tags,
      time: date,
      source,
      project,
      snippet,
      message: message_index,
    }))
  const withoutParent = results.filter(({ parent }) => parent === undefined)
  const hiddenKinds = describeOtherKinds(
    Object.fromEntries([...Map.groupBy(withoutParent, ({ kind }) => kind)].map(([kind, all]) => [kind, all.length])),
  )
  const hiddenNote = hiddenKinds === "" ? "" : `Not shown: ${hiddenKinds}; \`dex search\` shows them.`
  // A person who is typing knows that the last word is incomplete, so the note about it is left out.
  const expectedNotes = (output.replaced ?? []).map(({ typed, by }) => correctionNote({ typed, by, why: "prefix" }))
  const note =
    output.notes.find((candidate) => !expectedNotes.includes(candidate) && !isUnreadNote(candidate)) ?? hiddenNote
  return { rows, hasMore: output.results.length === limit, note }
}

/** A search for a project also finds projects whose path merely contains its own, and knows no folders. */
async function scopeTest(dex: Dex, { scope }: PickerFilter): Promise<(ref: string, project?: string) => boolean> {
  if (scope === "all") return () => true
  if (scope === "project") return (_, project) => project === dex.project
  const { rows } = await newestRows(dex, { scope }, Number.MAX_SAFE_INTEGER)
  const refs = new Set(rows.map(({ ref }) => ref))
  return (ref) => refs.has(ref)
}

const MAX_MESSAGES = 40
const MAX_CHARS = 1_500
/** The maximum number of rows of a preview. Few screens have more. */
const MAX_ROWS = 60
/** The preview shows at least this many lines of a long message. */
const MIN_LINES = 6

/** A preview for this screen. It begins with the conversation's first message, or with the message that matched. */
export async function previewOf(
  dex: Dex,
  row: Pick<PickerRow, "ref" | "message">,
  screen: Screen,
): Promise<Preview | undefined> {
  const ref = parseCompleteRef(row.ref)
  const store = await dex.store()
  const conversation = ref && (await store.conversation(ref))
  if (!conversation) return undefined
  const [work] = await store.work([conversation.ref])
  const messages = (await store.messages(conversation.ref)).filter(
    ({ superseded, abandoned }) => !superseded && !abandoned,
  )
  const firstIndex = Math.max(
    0,
    messages.findIndex(({ number }) => number === row.message),
  )
  const visibleMessages = messages
    .slice(firstIndex, firstIndex + MAX_MESSAGES)
    .map((message) => readableMessage(shortenMessage(message)))
  const agent = agentOf(conversation.ref.source)?.name ?? conversation.ref.source
  const options = { screen, agent, root: conversation.project ?? "", unfolds: () => false }
  return {
    ref: row.ref,
    title: markedTitle({ title: conversation.title?.text ?? "(no title)", tags: conversation.tags }),
    facts: factsOf(conversation, work!),
    messages: firstScreenful(readMessages(visibleMessages, options)),
  }
}

/** Returns only as many messages as fit on a screen, because drawing them is most of the work. */
function firstScreenful(messages: Iterable<string[]>): string[][] {
  const first: string[][] = []
  let lineCount = 0
  for (const message of messages) {
    first.push(message)
    lineCount += Math.min(message.length, MIN_LINES)
    if (lineCount >= MAX_ROWS) break
  }
  return first
}

/** The message with only the text of the person and the agent (shortened), tool calls and their results. */
function shortenMessage(message: StoredMessage): StoredMessage {
  const parts = message.parts.flatMap((part): Part[] => {
    if (part.type === "tool_call" || part.type === "tool_result") return [part]
    if (part.type !== "text" || part.origin === "injected") return []
    return [{ ...part, text: part.text.slice(0, MAX_CHARS) }]
  })
  return { ...message, parts }
}

function factsOf({ ref, project, git_branch, ended_at, message_count }: ConversationRow, work: Work): string[] {
  const origin = [
    agentOf(ref.source)?.name ?? ref.source,
    projectName(project ?? ""),
    ended_at === undefined ? "no date" : localMinute(ended_at),
    git_branch ?? "",
  ]
  const { files, commits, lines_added, lines_removed } = work
  const counts = [
    many(message_count, "message"),
    ...(files > 0 ? [many(files, "file")] : []),
    ...(lines_added + lines_removed > 0 ? [`+${lines_added} -${lines_removed}`] : []),
    ...(commits > 0 ? [many(commits, "commit")] : []),
  ]
  return [origin.filter((text) => text !== "").join(" · "), counts.join(" · ")]
}
