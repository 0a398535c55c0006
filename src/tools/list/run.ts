import { LISTED_KINDS, STAR_TAG } from "../../core/conversation.ts"
import type { Ref } from "../../core/ref.ts"
import { budgetTooSmall, fitItems } from "../../render/budget.ts"
import { intersectRefs } from "../../search/scope.ts"
import type { HistoryReader, ListFilter } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { conversationOf, dateRange } from "../fields.ts"
import { resolveSession } from "../resolve.ts"
import { commandLine } from "../view.ts"
import type { ListInput } from "./list.ts"

export async function run(dex: Dex, input: ListInput) {
  if (input.in === "docs" && input.collections === undefined) return listCollections(dex, input)
  const store = await dex.store()
  const conversation = await resolveSession(dex, input.session)
  const includesAllKinds = input.all || conversation !== undefined
  const filter = {
    project: input.project,
    source: input.source,
    ...dateRange(input, dex.now()),
    kinds: !includesAllKinds && input.collections === undefined ? LISTED_KINDS : undefined,
    collections:
      input.collections &&
      (await (await import("../docs/collections.ts")).requireVisibleCollections(dex, input.collections)),
    conversation,
    among: await chosenRefs(store, input),
    inside: dex.project,
    limit: input.limit,
    offset: input.offset,
  }
  const { rows, total, left_out } = await store.list(filter)
  const kinds = includesAllKinds && input.collections === undefined ? await kindsOf(store, filter) : undefined
  const work = await store.work(rows.map((row) => row.ref))
  const conversations = rows.map((row, i) => ({ ...conversationOf(row), ...work[i]! }))
  const note = total === 0 && Object.keys(left_out).length === 0 ? await noMatchNote(dex, store, input) : undefined
  const build = (count: number) => {
    const next = input.offset + count
    return {
      conversations: conversations.slice(0, count),
      total,
      kinds,
      left_out,
      next_offset: next < total && conversations.length > 0 ? next : undefined,
      continue_with: count < conversations.length ? continueCall(input, next) : undefined,
      note,
    }
  }
  const fit = fitItems(conversations.length, build, input.max_tokens, (i) => conversations[i]!.title.length)
  if (!fit || (fit.itemCount === 0 && conversations.length > 0)) throw budgetTooSmall(input.max_tokens!, build(1))
  return fit.answer
}

async function chosenRefs(
  store: HistoryReader,
  { file, archived, starred, tag }: ListInput,
): Promise<Ref[] | undefined> {
  const chosen = [
    ...(file === undefined ? [] : [await store.touching(file)]),
    ...(starred ? [await store.tagged(STAR_TAG)] : []),
    ...(tag === undefined ? [] : [await store.tagged(tag)]),
    ...(archived ? [await store.keptOnlyHere()] : []),
  ]
  return chosen.length === 0 ? undefined : intersectRefs(chosen)
}

async function kindsOf(store: HistoryReader, filter: ListFilter): Promise<Record<string, number>> {
  const { total, left_out } = await store.list({ ...filter, kinds: ["person"], limit: 0, offset: 0 })
  return { ...(total > 0 && { person: total }), ...left_out }
}

/** Explains why nothing matches the filters. */
async function noMatchNote(dex: Dex, store: HistoryReader, input: ListInput): Promise<string | undefined> {
  const { project, source, from, to, file, starred, tag, archived } = input
  const unknownProjectNote =
    project && (await (await import("../unknown-project.ts")).unknownProject(store, project, dex.project))
  if (unknownProjectNote !== undefined) return unknownProjectNote
  const filters = Object.entries({ project, source, from, to, file, starred, tag, archived }).filter(
    ([, value]) => value !== undefined,
  )
  return filters.length === 0
    ? undefined
    : `No conversation matches ${filters.map(([name, value]) => (value === true ? `--${name}` : `--${name} ${value}`)).join(" ")}.`
}

async function listCollections(dex: Dex, input: ListInput) {
  const { describeCollections } = await import("../docs/collections.ts")
  const collections = await describeCollections(dex)
  const build = (count: number) => ({
    conversations: [],
    collections: collections.slice(0, count),
    total: collections.length,
    left_out: {},
  })
  const fit = fitItems(collections.length, build, input.max_tokens, (i) => collections[i]!.name.length)
  if (!fit) throw budgetTooSmall(input.max_tokens!, build(1))
  return fit.answer
}

function continueCall(
  { all, starred, archived, in: _, offset: __, max_tokens, ...input }: ListInput,
  next: number,
): string {
  const call = commandLine("list", [], { ...input, offset: next, "max-tokens": max_tokens })
  return `${call}${starred ? " --starred" : ""}${archived ? " --archived" : ""}${all ? " --all" : ""}`
}
