import { agentOf } from "../../agents/registry.ts"
import { LISTED_KINDS, type Part } from "../../core/conversation.ts"
import { DAY_MS, localMinute } from "../../core/dates.ts"
import { formatRef, parseCompleteRef } from "../../core/ref.ts"
import { readMessages } from "../../render/message-lines.ts"
import type { Screen } from "../../render/screen.ts"
import { many, projectName } from "../../render/words.ts"
import { searchAsYouType, type TypedSearchCache } from "../../search/typing.ts"
import type { ConversationRow, StoredMessage, Work } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { describeOtherKinds } from "../../tools/kinds.ts"
import { correctionNote } from "../../tools/search/forgiving.ts"
import { search } from "../../tools/search/search.ts"
import { isUnreadNote } from "../../tools/unread.ts"
import { readableMessage } from "../print/conversation-lines.ts"
import { type FoundRows, newestRows } from "./newest-rows.ts"
import type { Preview } from "./preview-lines.ts"
import type { RowQuery } from "./start-look-up.ts"
import type { PickerRow } from "./state.ts"

/** Finds rows within the time between two key presses: the newest conversations, or the newest that contain these words. */
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
      project: filter.here ? dex.project : undefined,
      after: filter.days === undefined ? undefined : dex.now() - filter.days * DAY_MS,
      inside: dex.project,
      limit: MAX_TYPED_ROWS,
    },
    cache,
  )
  const rows = matches
    .filter(({ project }) => !filter.here || project === dex.project)
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

/** The results of the full search, in its order. */
export async function findRankedRows(dex: Dex, { text, filter, limit }: RowQuery): Promise<FoundRows> {
  const output = await search.run(dex, {
    query: text,
    in: "history",
    by: "conversation",
    explain: false,
    limit,
    offset: 0,
    source: filter.source,
    project: filter.here ? dex.project : undefined,
    from: filter.days === undefined ? undefined : `${filter.days}d`,
  })
  // The search also finds projects whose path merely contains this one.
  const results = output.results.filter(({ project }) => !filter.here || project === dex.project)
  const rows = results
    .filter(({ kind, parent }) => parent !== undefined || LISTED_KINDS.some((listedKind) => listedKind === kind))
    .map(({ id, title, date, source, project, snippet, message_index }) => ({
      ref: id,
      title,
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

/** How many messages are shown before the matching one. */
const MESSAGES_BEFORE = 1
const MAX_MESSAGES = 40
const MAX_CHARS = 1_500
/** The most rows of a preview. Few screens have more. */
const MAX_ROWS = 60
/** The preview shows at least this many lines of a long message. */
const MIN_LINES = 6

/** A preview for this screen. It begins with the conversation's first message, or just before the message that matched. */
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
  const first = Math.max(0, messages.findIndex(({ number }) => number === row.message) - MESSAGES_BEFORE)
  const visibleMessages = messages
    .slice(first, first + MAX_MESSAGES)
    .map((message) => readableMessage(shortenMessage(message)))
  const agent = agentOf(conversation.ref.source)?.name ?? conversation.ref.source
  const options = { screen, agent, root: conversation.project ?? "", unfolds: () => false }
  return {
    ref: row.ref,
    title: conversation.title?.text ?? "(no title)",
    facts: factsOf(conversation, work!),
    messages: firstScreenful(readMessages(visibleMessages, options)),
  }
}

/** Returns only as many messages as fit on a screen, because drawing them is most of the work. */
function firstScreenful(messages: Iterable<string[]>): string[][] {
  const first: string[][] = []
  let lines = 0
  for (const message of messages) {
    first.push(message)
    lines += Math.min(message.length, MIN_LINES)
    if (lines >= MAX_ROWS) break
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
