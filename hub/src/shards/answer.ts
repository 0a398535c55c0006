import { answerQuestions } from "../../../src/answers/team-questions.ts"
import { createDex } from "../../../src/app/dex.ts"
import { isDexError } from "../../../src/core/error.ts"
import { formatRef } from "../../../src/core/ref.ts"
import { readInput, type Tool } from "../../../src/core/tool.ts"
import { withVisibleTexts } from "../../../src/render/visible.ts"
import { parseQuery } from "../../../src/search/query.ts"
import type { HistoryReader } from "../../../src/store/history/store.ts"
import type { SearchIndex } from "../../../src/store/index/search-index.ts"
import { openSuggestions } from "../../../src/store/suggestions/suggestions.ts"
import type { Dex } from "../../../src/tools/context.ts"
import { linesQuery, type TeamQuestionKind } from "../../../src/tools/hub/team-question.ts"
import { list } from "../../../src/tools/list/list.ts"
import { search } from "../../../src/tools/search/search.ts"
import { timeline } from "../../../src/tools/show/forms.ts"
import { show } from "../../../src/tools/show/show.ts"
import { stats } from "../../../src/tools/stats/stats.ts"
import type { Database, Viewer } from "../store/connection.ts"
import { hasHistory } from "../store/feeds.ts"
import { openTenantHistory, withQuestionHistory } from "../store/history.ts"
import { createReadable } from "../store/readable.ts"
import { type ShardToAsk, shardOfProject, shardsOf, shardsWithProject } from "../store/shards.ts"
import { limitLines } from "./lines.ts"
import { openLocalShards } from "./local.ts"
import { isShardUnavailable, type MergedShard, mergedIndex, ShardUnavailableError } from "./merged.ts"
import type { CallNode, NodeAddress } from "./node-call.ts"
import { answerCall, remoteIndex, type ShardAnswer, type ShardQuestion } from "./remote.ts"

/** The tools of a team's history. They only read; other tools work only on a laptop. */
export const teamTools: readonly Tool<Dex>[] = [search, list, show, timeline, stats]

/** The tools, and further queries from which a laptop builds its own answers. Agents do not see those queries. */
export const teamQuestions: readonly TeamQuestionKind[] = [
  ...teamTools,
  ...answerQuestions,
  linesQuery as TeamQuestionKind,
]
/** The tools that use the search index. Their results are then read with the viewer's permissions. */
const INDEX_TOOLS = ["search", "passages"]
const SHARD_TOOLS = [...INDEX_TOOLS, "lines"]

export type TeamQuestion = { viewer: Viewer; tool: string; input: unknown }
export type TeamAnswer =
  | { output: unknown; drops: number }
  | { problem: { status: number; code: string; message: string } }

/** The problem to report while there is no index. Without one, a search would read all of a team's history for minutes. */
const INDEX_BUILDING = {
  status: 503,
  code: "building",
  message: "The hub is building its search index. Try again in a few minutes.",
}

/**
 * The problem to report if the node with a project's lines does not answer. All lines of a project are in one shard, so no other
 * node can give a partial answer.
 */
const LINES_UNAVAILABLE = {
  status: 503,
  code: "node_missing",
  message: "The hub's node that knows who wrote these lines does not answer. Try again in a minute.",
}

/** The problem to report if no shard answers. The answer "Nothing was found" would suggest that the search took place. */
const SEARCH_UNAVAILABLE = {
  status: 503,
  code: "node_missing",
  message:
    "The search did not take place: the hub's node with the search index does not answer. Try again in a minute.",
}

/**
 * For tests which show that each of the two access checks works without the other. `scope` replaces the condition for what a
 * member may read; `index` opens complete shards.
 */
export type AccessCheckOverrides = { scope?: string; index?: "all" }
type AnswerParts = {
  db: Database
  data: string
  folder: string
  version: string
  accessChecks?: AccessCheckOverrides
  /** How shards of other nodes are called. Absent if this node answers only from its own. */
  others?: { self: string; call: CallNode }
}

/** The time limits for each call to the shards, and for all calls of one question, in milliseconds. */
const CALL_MS = 3_000
const QUESTION_MS = 10_000

/** Answers questions from the shards, each for one viewer. */
export function createAnswers({ db, data, folder, version, accessChecks = {}, others }: AnswerParts) {
  const readable = createReadable(db)
  const local = openLocalShards(data)
  const remoteNodeOf = ({ node, url }: ShardToAsk): NodeAddress | undefined =>
    others && node !== null && node !== others.self ? { name: node, url } : undefined
  /**
   * The first access check: opens an index of only what the viewer may read. If the question names a project, `project` is the
   * text that the project's key must contain.
   */
  const indexFor = async (viewer: Viewer, project: string | undefined): Promise<SearchIndex | undefined> => {
    const { tenant } = viewer
    const time = { callMs: CALL_MS, until: Date.now() + QUESTION_MS }
    const readableNow = await readable(viewer)
    const namedShards = project === undefined ? undefined : await shardsWithProject(db, tenant, project)
    const placements = (await shardsOf(db, tenant)).filter(
      ({ shard }) => readableNow.shards.has(shard) || accessChecks.index === "all",
    )
    const indexes = placements.map(async (placed): Promise<MergedShard> => {
      const shardName = { tenant, shard: placed.shard }
      const scope = { of: viewer, version: readableNow.version, names: readableNow.shards.get(shardName.shard) ?? [] }
      const isNamed = namedShards?.has(shardName.shard) ?? true
      const node = remoteNodeOf(placed)
      if (node)
        return {
          index: remoteIndex(others!.call, node, { of: shardName, scope, ms: CALL_MS }),
          isNamed,
          isRemote: true,
        }
      const index = await local.open(shardName, accessChecks.index === "all" ? undefined : scope)
      return { index: index === "scope" ? undefined : index, isNamed }
    })
    const shards = await Promise.all(indexes)
    if (shards.length > 0 && shards.every(({ index }) => index === undefined)) return undefined
    return shards.length === 1 && !shards[0]!.isRemote ? shards[0]!.index : mergedIndex(shards, time)
  }
  /** The node with a project's lines, if that is another node. */
  const remoteNodeOfLines = async ({ tenant }: Viewer, project: string): Promise<NodeAddress | undefined> => {
    if (!others) return undefined
    const shard = await shardOfProject(db, tenant, project)
    const placed = (await shardsOf(db, tenant)).find((one) => one.shard === shard)
    return placed && remoteNodeOf(placed)
  }
  const linesOf = async (viewer: Viewer, project: string) => {
    const shard = await shardOfProject(db, viewer.tenant, project)
    const knowledge = shard === undefined ? undefined : local.lines({ tenant: viewer.tenant, shard })
    if (accessChecks.index === "all") return limitLines(knowledge, undefined)
    return limitLines(knowledge, (await readable(viewer)).shards.get(shard ?? -1) ?? new Set())
  }
  const answer = async ({ viewer, tool: name, input }: TeamQuestion): Promise<TeamAnswer> => {
    const tool = teamQuestions.find((one) => one.name === name)
    if (!tool) return { problem: { status: 404, code: "not_found", message: `A hub has no tool ${name}.` } }
    const read = readInput(tool.input, tool, input)
    if ("wrong" in read) return { problem: { status: 400, code: "invalid", message: `${read.wrong}.` } }
    const names = read.ok as SearchNames
    const node = name === "lines" ? await remoteNodeOfLines(viewer, names.project ?? "") : undefined
    // The other node answers the complete question, with both access checks.
    if (node)
      try {
        return { output: await others!.call(node, "lines", { viewer, input }, QUESTION_MS), drops: 0 }
      } catch (error) {
        if (error instanceof ShardUnavailableError) return { problem: LINES_UNAVAILABLE }
        throw error
      }
    const index = INDEX_TOOLS.includes(name) ? await indexFor(viewer, projectNamed(names)) : undefined
    if (INDEX_TOOLS.includes(name) && !index && (await hasHistory(db, viewer.tenant)))
      return { problem: INDEX_BUILDING }
    const lines = () => linesOf(viewer, names.project ?? "")
    const options = accessChecks.scope === undefined ? {} : { scope: accessChecks.scope }
    return withQuestionHistory(db, viewer, options, async (history) => {
      const checked = SHARD_TOOLS.includes(name) ? countDrops(db, viewer, history) : { history, drops: () => 0 }
      try {
        const { output } = withVisibleTexts(
          await tool.run(teamDex(folder, version, checked.history, index), read.ok, lines),
        )
        return index?.isUnanswered?.() ? { problem: SEARCH_UNAVAILABLE } : { output, drops: checked.drops() }
      } catch (error) {
        if (!isDexError(error)) throw error
        return { problem: { status: 400, code: error.code, message: error.message } }
      }
    })
  }
  /** Answers another node's call to a shard of this node, within the scope that the caller's first access check computed. */
  const answerShard = async (question: ShardQuestion): Promise<ShardAnswer> => {
    const { tenant, shard, scope } = question
    try {
      const index = await local.open({ tenant, shard }, { ...scope, of: { member: scope.member } })
      if (index === "scope") return { missing: "scope" }
      return index ? { answer: await answerCall(index, question) } : { missing: "shard" }
    } catch (error) {
      if (isShardUnavailable(error)) return { missing: "shard" }
      throw error
    }
  }
  return {
    answer,
    answerShard,
    close: local.close,
  }
}

type SearchNames = { query?: string; project?: string }

/** The project that a search names. The option takes precedence over the query text. */
function projectNamed({ query = "", project }: SearchNames): string | undefined {
  return project ?? parseQuery(query).filters.project
}

/**
 * Counts the conversations that only the second access check drops. In that check, results are read with the viewer's
 * permissions. If a result exists that the viewer may not read, the first check has failed, which should never happen.
 */
function countDrops(
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
        const result = await history.list(filter)
        const { among = [], limit, offset } = filter
        const names = new Set(result.rows.map(({ ref }) => formatRef(ref)))
        const missing = limit < among.length || offset > 0 ? [] : among.filter((ref) => !names.has(formatRef(ref)))
        if (missing.length > 0)
          dropped += (await openTenantHistory(db, viewer.tenant).list({ ...filter, among: missing })).rows.length
        return result
      },
      conversation: async (ref) => {
        const row = await history.conversation(ref)
        if (!row && (await openTenantHistory(db, viewer.tenant).conversation(ref))) dropped++
        return row
      },
    },
  }
}

/**
 * The context in which the tools run on a team's history. Its home is `folder`, which is empty, so that nothing from this machine
 * appears in an answer.
 */
function teamDex(folder: string, version: string, history: HistoryReader, index: SearchIndex | undefined): Dex {
  const refuse = () => Promise.reject(new Error("A hub's history can be changed only by pushing to it."))
  return {
    ...createDex({ env: { HOME: folder, DEX_HOME: folder }, cwd: folder, version }),
    project: "",
    isTeam: true,
    hasHistory: () => true,
    store: async () => history,
    storeToWrite: refuse,
    index: async () => index,
    indexIsDamaged: async () => false,
    indexToWrite: async () => undefined,
    hasKnowledge: () => false,
    hasSuggestions: () => false,
    suggestions: () => Promise.resolve(openSuggestions(":memory:", { redact: (text) => text })),
    takeDamaged: async () => [],
    syncInBackground: async () => false,
    syncDeps: refuse,
    lastListing: () => ({ refs: [], words: [] }),
  }
}
