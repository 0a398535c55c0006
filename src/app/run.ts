import { join } from "node:path"
import { loadSettings } from "../config/load.ts"
import type { Tool } from "../core/tool.ts"
import { visibleIn } from "../render/visible.ts"
import type { Dex } from "../tools/context.ts"
import { isTraced, observe } from "../tools/observe.ts"
import { appendTrace } from "../trace/append.ts"

export type Answer = {
  /** As people see it: every face gives the same, and none gives a sign that nobody sees. */
  output: unknown
  /** How many such signs were taken out. */
  removed: number
  /** Writes the trace. For after the answer is out: nobody waits for it, and it never fails. */
  record(): Promise<void>
}

/**
 * Runs a tool for a face: the one place where traces are recorded, and where what others wrote is made visible before it
 * leaves. Throws what the tool throws, recorded as well.
 */
export async function runTool(tool: Tool<never>, dex: Dex, input: unknown): Promise<Answer> {
  if (!isTraced(tool)) {
    const output = await (tool.run as (dex: Dex, input: unknown) => Promise<unknown>)(dex, input)
    return { ...visibleIn(output), record: async () => {} }
  }
  const { ended, trace } = await observe(tool, dex, input)
  const record = async () => {
    try {
      if (tracesAreOn(dex)) appendTrace(dex.home.traces, await trace())
    } catch {
      // A full disk or a read-only home: the answer stands without its trace.
    }
  }
  if ("output" in ended) return { ...visibleIn(ended.output), record }
  await record()
  throw ended.error
}

function tracesAreOn(dex: Dex): boolean {
  const file = join(dex.home.dir, "config.json")
  return loadSettings({ file, env: dex.machine.env, project: dex.project }).settings.traces
}
