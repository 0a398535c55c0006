import { join } from "node:path"
import { loadSettings } from "../config/load.ts"
import { codeOf, DexError, isDexError } from "../core/error.ts"
import type { Tool } from "../core/tool.ts"
import { withVisibleTexts } from "../render/visible.ts"
import type { Dex } from "../tools/context.ts"
import { sourceField } from "../tools/fields.ts"
import { isTraced, observe } from "../tools/observe.ts"
import { namedSources, requireSource } from "../tools/source-named.ts"
import { appendTrace } from "../trace/append.ts"

export type ToolRun = {
  /** The output without invisible characters. It is the same for the CLI, MCP and HTTP. */
  output: unknown
  /** How many invisible characters were removed. */
  removed: number
  /** Notes about damaged data that was left out, and what to do about it. */
  notes: string[]
  /** Writes the trace. Call this after the answer was printed, so that nobody waits for it. It never fails. */
  record(): Promise<void>
}

const pendingTraces = new Set<Promise<void>>()

/** Writes the trace after the answer was sent. The process awaits `waitForTraces` before it ends. */
export function recordLater({ record }: ToolRun): void {
  const written = new Promise<void>((resolve) => setImmediate(resolve)).then(record).then(() => {
    pendingTraces.delete(written)
  })
  pendingTraces.add(written)
}

/** Resolves when all pending traces have been written. */
export async function waitForTraces(): Promise<void> {
  await Promise.all(pendingTraces)
}

/**
 * Runs a tool for the CLI, MCP or HTTP, prepares the trace of the run, and removes invisible characters from other people's text.
 * If the tool fails, writes the trace and throws the tool's error.
 */
export async function runTool(tool: Tool<Dex>, dex: Dex, rawInput: unknown): Promise<ToolRun> {
  await dex.locate()
  const input = await withSource(tool, dex, rawInput)
  if (!isTraced(tool)) {
    const output = await tool.run(dex, input).catch(async (error: unknown) => {
      throw await withDamageNote(dex, error)
    })
    return { ...withVisibleTexts(output), notes: await damageNotes(dex), record: async () => {} }
  }
  const { ended, trace } = await observe(tool, dex, input)
  const record = async () => {
    try {
      if (tracesAreOn(dex)) appendTrace(dex.home.traces, await trace())
    } catch {
      // The disk is full or the home is read-only; the answer is valid without its trace.
    }
  }
  if ("output" in ended) return { ...withVisibleTexts(ended.output), notes: await damageNotes(dex), record }
  await record()
  throw await withDamageNote(dex, ended.error)
}

/** Replaces the source's name in the input with its id. Throws a DexError if there is no such source. */
async function withSource(tool: Tool<Dex>, dex: Dex, input: unknown): Promise<unknown> {
  const sourceName = (input as { source?: string } | undefined)?.source
  // The field is recognised by its description, because the build may contain a second copy of it in another file.
  if (sourceName === undefined || tool.input.properties?.source?.description !== sourceField.description) return input
  return { ...(input as object), source: requireSource(sourceName, await namedSources(dex)) }
}

/** Reports damage that was found, and records it for the next sync, which repairs it. */
async function damageNotes(dex: Dex): Promise<string[]> {
  const names = await dex.takeDamaged().catch(() => []) // a history that cannot be opened was already reported
  if (names.length === 0) return []
  const { damageFile, noteDamage } = await import("../store/history/rot/damage-list.ts")
  noteDamage(damageFile(dex.home.dir), names)
  return [damageNote(names)]
}

const MAX_SHOWN_NAMES = 3

/** Returns the note for an answer that is based on damaged data. */
function damageNote(names: readonly string[]): string {
  const shownNames = names.slice(0, MAX_SHOWN_NAMES).join(", ")
  const moreText = names.length > MAX_SHOWN_NAMES ? ` and ${names.length - MAX_SHOWN_NAMES} more` : ""
  return `history.db is damaged in places: ${shownNames}${moreText}. Damaged data was left out. \`dex sync\` restores what it can; \`dex doctor\` shows the details.`
}

/** Returns the error to throw. If data that the tool read was damaged, the error says so. */
async function withDamageNote(dex: Dex, error: unknown): Promise<unknown> {
  const notes = await damageNotes(dex)
  if (isDexError(error))
    return notes.length === 0 ? error : new DexError(error.code, [error.message, ...notes].join(" "), { cause: error })
  // The knowledge database is the only one that is read without a check for damage. It is rebuilt when it is next opened.
  if (!/^SQLITE_(CORRUPT|NOTADB)/.test(codeOf(error)) || !dex.hasKnowledge()) return error
  const { markDamaged } = await import("../store/sqlite/database.ts")
  markDamaged(dex.home.knowledge)
  return new DexError(
    "corrupt",
    `${dex.home.knowledge} is damaged. It contains only derived data and is rebuilt automatically. Run the command again.`,
    { cause: error },
  )
}

function tracesAreOn(dex: Dex): boolean {
  const file = join(dex.home.dir, "config.json")
  return loadSettings({ file, env: dex.machine.env, project: dex.place }).settings.traces
}
