import { DexError, isDexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { conversationRefOf, parseCompleteRef } from "../../core/ref.ts"
import { readInput, type Tool } from "../../core/tool.ts"
import { addsUp, type Trace, type TraceRow } from "../../core/trace.ts"
import { many } from "../../render/words.ts"
import { findTraces, readTraces } from "../../trace/read.ts"
import type { Dex } from "../context.ts"
import { isTraced, observe } from "../observe.ts"
import { search } from "../search/search.ts"
import { read, scan, timeline } from "../show/forms.ts"
import { show } from "../show/show.ts"
import { isPrivateElsewhere } from "../traces/run.ts"
import { changesBetween, type Replay } from "./replay.ts"
import type { TraceInput } from "./trace.ts"

export async function run(dex: Dex, input: TraceInput) {
  const original = await requireTrace(dex, input.id)
  const { trace, maskedCount } = await withoutPrivateRows(dex, original)
  const notes: string[] = []
  if (maskedCount > 0) notes.push(`Not shown: the content of ${many(maskedCount, "row")} from private projects.`)
  if (trace.ranking.length < trace.ranking_total)
    notes.push(`The trace contains only the first ${trace.ranking.length} of ${grouped(trace.ranking_total)} rows.`)
  const replay = input.replay ? await runAgain(dex, original, notes) : undefined
  return {
    trace,
    adds_up: trace.ranking.every(addsUp),
    replay,
    notes,
  }
}

async function requireTrace(dex: Dex, id: string | undefined): Promise<Trace> {
  const isHidden = await isPrivateElsewhere(dex)
  const { traces } = dex.home
  const candidates = id === undefined ? readTraces(traces, { tail: 1000 }).traces.reverse() : findTraces(traces, id)
  const visible = candidates.filter((trace) => !isHidden(trace.project))
  const [first, second] = visible
  if (!first && candidates.length > 0)
    throw new DexError("private", "That trace was made in a private project. Run dex inside that folder to see it.")
  if (!first)
    throw new DexError(
      "not_found",
      id === undefined
        ? "There are no traces yet. Every search, show, ask, suggest and reindex leaves one, unless the setting traces is off."
        : `No trace "${id}" was found. \`dex trace --list\` lists them; the oldest are deleted when their files are full.`,
    )
  if (id !== undefined && second) {
    const names = visible.slice(0, 5).map((trace) => trace.trace_id)
    throw new DexError("ambiguous_trace", `"${id}" matches several traces: ${names.join(", ")}. Type more of it.`)
  }
  return first
}

/** Hides the summaries of rows from private projects. A project may have become private after the trace was recorded. */
async function withoutPrivateRows(dex: Dex, trace: Trace): Promise<{ trace: Trace; maskedCount: number }> {
  const isHidden = await isPrivateElsewhere(dex)
  let maskedCount = 0
  const ranking: TraceRow[] = []
  for (const row of trace.ranking) {
    const project = await projectOf(dex, row.ref)
    const isPrivateRow = project !== undefined && isHidden(project)
    if (isPrivateRow) maskedCount++
    ranking.push(isPrivateRow ? { ...row, summary: "(private)" } : row)
  }
  return { trace: { ...trace, ranking }, maskedCount }
}

async function projectOf(dex: Dex, ref: string): Promise<string | undefined> {
  const parsed = parseCompleteRef(ref)
  if (!parsed || !dex.hasHistory()) return undefined
  return (await (await dex.store()).conversation(conversationRefOf(parsed)))?.project
}

/** The tools that can be replayed, because they only read. */
const REPLAYABLE_TOOLS: readonly Tool<Dex>[] = [search, timeline, show, scan, read]

/** Runs the same tool with the same input, project and clock, on the current history. */
async function runAgain(dex: Dex, trace: Trace, notes: string[]): Promise<Replay> {
  if (["ask", "suggest"].includes(trace.command))
    throw new DexError(
      "no_replay",
      `A trace of ${trace.command} cannot be replayed. Run \`dex ${trace.command}\` again instead.`,
    )
  const tool = REPLAYABLE_TOOLS.find((candidate) => candidate.trace?.command === trace.command)
  if (!tool || !isTraced(tool))
    throw new DexError(
      "no_replay",
      `A trace of ${trace.command} cannot be replayed, because the command changes stored data or does not exist in this version of dex.`,
    )
  const request = { ...trace.args, query: trace.query }
  if (JSON.stringify(request).includes("[REDACTED:"))
    notes.push("The query was redacted when it was recorded, so this replay is not exact.")
  if (trace.truncation?.query_characters !== undefined)
    notes.push("The query was too long to be recorded completely, so this replay is not exact.")
  const input = readInput(tool.input, tool, request)
  if ("wrong" in input) throw new DexError("no_replay", `This dex no longer accepts that input: ${input.wrong}.`)
  const pastDex: Dex = Object.create(dex, {
    now: { value: () => Date.parse(trace.ts) || dex.now() },
    project: { value: trace.project },
  })
  const replayedRun = await observe(tool, pastDex, input.ok)
  if ("error" in replayedRun.ended && !isDexError(replayedRun.ended.error)) throw replayedRun.ended.error
  return changesBetween(trace, await replayedRun.trace())
}
