import { queriesForAnswers } from "../../../src/answers/team-questions.ts"
import { createDex } from "../../../src/app/dex.ts"
import { isDexError } from "../../../src/core/error.ts"
import { formatRef } from "../../../src/core/ref.ts"
import { readInput, type Tool } from "../../../src/core/tool.ts"
import type { LinesRequest } from "../../../src/learn/blame/lines-about.ts"
import { withVisibleTexts } from "../../../src/render/visible.ts"
import type { HistoryReader } from "../../../src/store/history/store.ts"
import type { SearchIndex } from "../../../src/store/index/search-index.ts"
import { openSuggestions } from "../../../src/store/suggestions/suggestions.ts"
import type { Dex } from "../../../src/tools/context.ts"
import { linesQuery, type TeamQueryKind } from "../../../src/tools/hub/team-question.ts"
import { list } from "../../../src/tools/list/list.ts"
import { search } from "../../../src/tools/search/search.ts"
import { timeline } from "../../../src/tools/show/forms.ts"
import { show } from "../../../src/tools/show/show.ts"
import { stats } from "../../../src/tools/stats/stats.ts"
import type { Database, Viewer } from "../store/connection.ts"
import { hasHistory } from "../store/feeds.ts"
import { openTenantHistory, withQuestionHistory } from "../store/history.ts"
import { linesAbout } from "../store/lines.ts"
import { type AccessNow, accessOf, accessToAll } from "../store/member-access.ts"
import { SEARCH_UNAVAILABLE, searchIndexOf, type TenantWords, type WordEngine } from "./engine.ts"
import { ClusterUnavailable } from "./opensearch/client.ts"

/** The tools of a team's history. They only read; other tools work only on a laptop. */
export const teamTools: readonly Tool<Dex>[] = [search, list, show, timeline, stats]

/** The tools, and further queries from which a laptop builds its own answers. Agents do not see those queries. */
export const teamQueries: readonly TeamQueryKind[] = [...teamTools, ...queriesForAnswers, linesQuery as TeamQueryKind]
/** The tools that use the search index. Their results are then read with the viewer's permissions. */
const INDEX_TOOLS = ["search", "passages"]

/** Conversations that only the second access check dropped; `expected` because of a change that the index did not know yet. */
export type Drops = { expected: number; unexpected: number }
export type TeamRequest = { viewer: Viewer; tool: string; input: unknown }
export type TeamAnswer =
  | { output: unknown; drops: Drops }
  | { problem: { status: number; code: string; message: string } }

/** The problem to report while there is no index. Without one, a search would read all of a team's history for minutes. */
const INDEX_BUILDING = {
  status: 503,
  code: "building",
  message: "The hub is building its search index. Try again in a few minutes.",
}

/**
 * For tests which show that each of the two access checks works without the other. `scope` replaces the condition for what a
 * member may read; `index` opens complete indexes.
 */
export type AccessCheckOverrides = { scope?: string; index?: "all" }
type AnswerParts = {
  db: Database
  words: WordEngine
  folder: string
  version: string
  accessChecks?: AccessCheckOverrides
}

/** Answers questions, each for one viewer. */
export function createAnswers({ db, words, folder, version, accessChecks = {} }: AnswerParts) {
  const accessNow = async (viewer: Viewer, { followed }: TenantWords): Promise<AccessNow> => {
    const now = await accessOf(db, viewer, followed)
    return accessChecks.index === "all" ? { ...now, access: await accessToAll(db, viewer.tenant) } : now
  }
  /** Whether the member's access or the history has changed since the index was asked. */
  const hasChanged = async (viewer: Viewer, opened: TenantWords, before: AccessNow): Promise<boolean> => {
    const now = await accessNow(viewer, opened)
    return now.isBehind || JSON.stringify(now.access) !== JSON.stringify(before.access)
  }
  const answerNow = async ({ viewer, tool: name, input }: TeamRequest): Promise<TeamAnswer> => {
    const tool = teamQueries.find((one) => one.name === name)
    if (!tool)
      return {
        problem: {
          status: 404,
          code: "not_found",
          message: `This hub has no tool called ${name}. It may be older than your dex.`,
        },
      }
    const parsedInput = readInput(tool.input, tool, input)
    if ("wrong" in parsedInput) return { problem: { status: 400, code: "invalid", message: `${parsedInput.wrong}.` } }
    const usesIndex = INDEX_TOOLS.includes(name)
    const opened = usesIndex ? await words.open(viewer.tenant) : undefined
    if (usesIndex && !opened && (await hasHistory(db, viewer.tenant))) return { problem: INDEX_BUILDING }
    const now = opened && (await accessNow(viewer, opened))
    // The first access check: the index answers as if it had only what the viewer may read.
    const index = opened && searchIndexOf(await opened.within(now!.access))
    // Only the query for lines calls this.
    const lines = () => linesAbout(db, viewer, parsedInput.ok as LinesRequest, accessChecks.scope)
    const options = accessChecks.scope === undefined ? {} : { scope: accessChecks.scope }
    return withQuestionHistory(db, viewer, options, async (history) => {
      const checked = index ? countDrops(db, viewer, history) : { history, drops: () => 0 }
      try {
        const { output } = withVisibleTexts(
          await tool.run(teamDex(folder, version, checked.history, index), parsedInput.ok, lines),
        )
        const drops = checked.drops()
        const isExpected = drops > 0 && (await hasChanged(viewer, opened!, now!))
        return {
          output: now && !now.isComplete ? withoutNumbers(output) : output,
          drops: isExpected ? { expected: drops, unexpected: 0 } : { expected: 0, unexpected: drops },
        }
      } catch (error) {
        if (!isDexError(error)) throw error
        return { problem: { status: 400, code: error.code, message: error.message } }
      }
    })
  }
  const answer = async (request: TeamRequest): Promise<TeamAnswer> => {
    try {
      return await answerNow(request)
    } catch (error) {
      if (!(error instanceof ClusterUnavailable)) throw error
      return { problem: SEARCH_UNAVAILABLE }
    }
  }
  return { answer, close: words.close }
}

const BEHIND_NOTE =
  "The hub's search index is far behind, so nothing was counted and results may be missing. Search again in a few minutes."

/**
 * Removes the numbers from an answer. If too much has changed, the index still counts what the member may no longer read. The
 * results themselves were read with the member's permissions.
 */
function withoutNumbers(output: unknown): unknown {
  const { results, found, weights, notes: _, ...others } = output as UncountedOutput
  const isShown = ([name]: [string, unknown]) => !/^(?:score|total|conversations|kinds|more_matches)/.test(name)
  const shownOf = (one: object) => Object.fromEntries(Object.entries(one).filter(isShown))
  return {
    ...shownOf(others),
    ...(results && {
      results: results.map((one) => ({ ...shownOf(one), more_matches: 0, score_final: 0 })),
      total: results.length,
      total_is_at_least: true,
    }),
    ...(found && { found: found.map((one) => ({ ...one, score: 0 })), weights: weights?.map(() => 1) }),
    notes: [BEHIND_NOTE],
  }
}

/** The output of a search, or of the search for an answer. */
type UncountedOutput = { results?: object[]; found?: object[]; weights?: number[]; notes?: string[] }

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
