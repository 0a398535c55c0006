import { askQuestions } from "../../../src/answers/team-questions.ts"
import { isDexError } from "../../../src/core/error.ts"
import { formatRef } from "../../../src/core/ref.ts"
import { readAs } from "../../../src/core/schema.ts"
import type { Tool } from "../../../src/core/tool.ts"
import { visibleIn } from "../../../src/render/visible.ts"
import type { HistoryReader } from "../../../src/store/history/store.ts"
import type { IndexScope } from "../../../src/store/index/query.ts"
import { scopedIndex } from "../../../src/store/index/scoped.ts"
import { readIndex, type SearchIndex } from "../../../src/store/index/search-index.ts"
import type { Knowledge } from "../../../src/store/knowledge/knowledge.ts"
import { linesQuestion } from "../../../src/tools/blame/team-lines.ts"
import type { Dex } from "../../../src/tools/context.ts"
import type { TeamQuestionKind } from "../../../src/tools/hub/team-question.ts"
import { tools } from "../../../src/tools/index.ts"
import type { Database, Viewer } from "../store/connection.ts"
import { hasHistory } from "../store/feeds.ts"
import { forOneQuestion, openTenantHistory } from "../store/history.ts"
import { createReadable } from "../store/readable.ts"
import { shardFile } from "./files.ts"
import { linesWithin, readShardLines } from "./lines.ts"
import { teamDex } from "./team-dex.ts"

/** What a team's history can be asked. They only read; the others are a laptop's. */
const ASKABLE = ["search", "show", "list", "timeline", "stats"]
export const teamTools: readonly Tool<Dex>[] = (tools as readonly Tool<Dex>[]).filter(({ name }) =>
  ASKABLE.includes(name),
)

/** Also what a laptop asks to make an answer of its own. Agents do not see these. */
const asked: readonly TeamQuestionKind[] = [...teamTools, ...askQuestions, linesQuestion as TeamQuestionKind]
/** What comes from the shard: each is then read as the one who asked. */
const FROM_SHARD = ["search", "passages", "lines"]

export type TeamQuestion = { viewer: Viewer; tool: string; input: unknown }
export type TeamAnswer =
  | { output: unknown; drops: number }
  | { problem: { status: number; code: string; message: string } }

/** Reading all of a team's history for one search would take minutes. */
const BUILDING = {
  status: 503,
  code: "building",
  message: "The hub is building its search index. Ask again in a few minutes.",
}

/** Only to show that each wall holds alone: `scope` in place of what a member may read, and all of a shard. */
export type AnswerWalls = { scope?: string; index?: "all" }
export type AnswerParts = { db: Database; data: string; folder: string; version: string; walls?: AnswerWalls }

/** Answers one question after the other from this node's shards, each for one person. */
export function createAnswers({ db, data, folder, version, walls = {} }: AnswerParts) {
  const readable = createReadable(db)
  const shards = new Map<number, SearchIndex>()
  const derived = new Map<number, Knowledge>()
  const scopes = new Map<string, { version: number; followed: string | undefined; scope: IndexScope }>()
  const shardOf = (tenant: number): SearchIndex | undefined => {
    const known = shards.get(tenant)
    if (known) return known
    const index = readIndex(shardFile(data, tenant))
    if (typeof index === "string") return undefined
    shards.set(tenant, index)
    return index
  }
  const linesOf = (tenant: number): Knowledge | undefined => {
    const known = derived.get(tenant) ?? readShardLines(shardFile(data, tenant))
    if (known) derived.set(tenant, known)
    return known
  }
  /** The first wall: of the shard only what they may read. */
  const indexFor = async (viewer: Viewer): Promise<SearchIndex | undefined> => {
    const index = shardOf(viewer.tenant)
    if (!index || walls.index === "all") return index
    const { names, version } = await readable(viewer)
    const followed = await index.followed()
    const key = `${viewer.tenant} ${viewer.member}`
    const known = scopes.get(key)
    if (known?.version === version && known.followed === followed) return scopedIndex(index, known.scope)
    const scope = await index.scope([...names])
    scopes.set(key, { version, followed, scope })
    return scopedIndex(index, scope)
  }
  const answer = async ({ viewer, tool: name, input }: TeamQuestion): Promise<TeamAnswer> => {
    const tool = asked.find((one) => one.name === name)
    if (!tool) return { problem: { status: 404, code: "not_found", message: `A hub has no tool ${name}.` } }
    const read = readAs(tool.input, input)
    if ("wrong" in read) return { problem: { status: 400, code: "invalid", message: `${read.wrong}.` } }
    const index = await indexFor(viewer)
    if (name === "search" && !index && (await hasHistory(db, viewer.tenant))) return { problem: BUILDING }
    const lines = async () =>
      linesWithin(linesOf(viewer.tenant), walls.index === "all" ? undefined : (await readable(viewer)).names)
    const options = walls.scope === undefined ? {} : { scope: walls.scope }
    return forOneQuestion(db, viewer, options, async (history) => {
      const watched = FROM_SHARD.includes(name) ? watchSecondWall(db, viewer, history) : { history, drops: () => 0 }
      try {
        const { output } = visibleIn(
          await tool.run(teamDex(folder, version, watched.history, index), read.ok as never, lines),
        )
        return { output, drops: watched.drops() }
      } catch (error) {
        if (!isDexError(error)) throw error
        return { problem: { status: 400, code: error.code, message: error.message } }
      }
    })
  }
  return {
    answer,
    close: () => {
      for (const opened of [...shards.values(), ...derived.values()]) opened.close()
    },
  }
}

/**
 * The second wall: what was found is read as the one who asked. A conversation that is there and that they may not read got
 * through the first one: it is dropped and counted, and should never happen.
 */
function watchSecondWall(
  db: Database,
  viewer: Viewer,
  history: HistoryReader,
): { history: HistoryReader; drops: () => number } {
  let dropped = 0
  return {
    drops: () => dropped,
    history: {
      ...history,
      list: async (filter) => {
        const found = await history.list(filter)
        const { among = [], limit, offset } = filter
        const names = new Set(found.rows.map(({ ref }) => formatRef(ref)))
        const missing = limit < among.length || offset > 0 ? [] : among.filter((ref) => !names.has(formatRef(ref)))
        if (missing.length > 0)
          dropped += (await openTenantHistory(db, viewer.tenant).list({ ...filter, among: missing })).rows.length
        return found
      },
      conversation: async (ref) => {
        const row = await history.conversation(ref)
        if (!row && (await openTenantHistory(db, viewer.tenant).conversation(ref))) dropped++
        return row
      },
    },
  }
}
