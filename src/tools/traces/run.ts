import { isSamePath } from "../../core/path-key.ts"
import type { Trace } from "../../core/trace.ts"
import { projectsHiddenFrom } from "../../search/scope.ts"
import { readTraces } from "../../trace/read.ts"
import type { Dex } from "../context.ts"
import type { TracesInput } from "./traces.ts"

export async function run(dex: Dex, input: TracesInput) {
  const { traces, unreadable } = readTraces(dex.home.traces, { tail: input.limit })
  const isHidden = await isPrivateElsewhere(dex)
  const visibleTraces = traces.filter((trace) => !isHidden(trace.project))
  return { traces: visibleTraces.map(lineOf), hidden_private: traces.length - visibleTraces.length, unreadable }
}

function lineOf(trace: Trace) {
  return {
    trace_id: trace.trace_id,
    ts: trace.ts,
    command: trace.command,
    about: aboutOf(trace),
    mode: trace.mode,
    hits: trace.ranking_total,
    messages: trace.inputs.messages,
    duration_ms: trace.duration_ms,
    error: trace.error?.code,
  }
}

/** The query, or other text inputs such as refs. */
function aboutOf(trace: Pick<Trace, "query" | "args">): string {
  return trace.query ?? Object.values(trace.args).flatMap(textsOf).join(" ")
}

function textsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(textsOf)
  return typeof value === "string" ? [value] : []
}

/** Returns a function that checks whether a project is private and is not the current one. Its traces are then not shown. */
export async function isPrivateElsewhere(dex: Dex): Promise<(project: string) => boolean> {
  if (!dex.hasHistory()) return () => false
  const { platform } = dex.machine
  const hidden = projectsHiddenFrom(await (await dex.store()).projects(), dex.project, platform)
  return (project) => hidden.some((path) => isSamePath(path, project, platform))
}
