import { setFlagsFromString } from "node:v8"
import { agents } from "../../agents/registry.ts"
import { recordLater, runTool } from "../../app/run.ts"
import { callerName } from "../../core/caller-name.ts"
import { DexError } from "../../core/error.ts"
import { readAs } from "../../core/schema.ts"
import { readInput } from "../../core/tool.ts"
import { toJson } from "../../render/json.ts"
import type { Dex, ExtraFacts } from "../../tools/context.ts"
import { agentInputOf, type OfferedTool, offeredTools } from "./definitions.ts"
import type { Freshness } from "./fresh.ts"
import { answerText } from "./text.ts"

export type ServerParts = {
  version: string
  use<T>(work: (dex: Dex) => Promise<T>): Promise<T>
  fresh: Freshness
  log(line: string): void
}

/** `client` is the name that the calling program gave itself, such as `claude-code`. */
export type CallContext = { signal: AbortSignal; _meta?: Record<string, unknown>; client?: string }

/** A tool's answer: as data, and as text for a model. */
export type CallResult = { output: unknown; text: string; fresh_as_of?: string }

/** How long a call waits for new messages to be read, in milliseconds; the rest is read in the background. */
const FRESH_WITHIN_MS = 100
/** How long the first call waits if nothing was ever read, in milliseconds. Without waiting, its answer would be empty. */
const FIRST_READ_MS = 3_500
/** How long a call waits for learning, in milliseconds; the rest is learned in the background. */
const LEARN_WITHIN_MS = 1_000

/**
 * Runs a tool for one request, after reading new messages. Throws the tool's errors, and a DexError for invalid input. Returns
 * undefined if the call was cancelled before the tool ran.
 */
export async function runCall(
  tool: OfferedTool,
  input: Record<string, unknown>,
  { signal, _meta, client }: CallContext,
  { use, fresh }: ServerParts,
): Promise<CallResult | undefined> {
  const checked = readInput(agentInputOf(tool), tool, withoutNulls(input))
  if ("wrong" in checked) throw new DexError("usage", `${checked.wrong}. ${tool.mcp.name} takes: ${fieldsOf(tool)}.`)
  // Fields that agents cannot set get their defaults.
  const filled = tool.mcp.omit ? readAs(tool.input, checked.ok) : checked
  if ("wrong" in filled) throw new DexError("usage", filled.wrong)
  // Determined before the tool runs and opens its files, because messages that are read meanwhile may not be in its answer.
  const asOf = await use(async (dex) => {
    if (tool.name === "guide") return undefined
    await fresh.readNewMessages(dex.hasHistory() ? FRESH_WITHIN_MS : FIRST_READ_MS, signal)
    return signal.aborted ? undefined : freshAsOf(dex, fresh)
  })
  if (signal.aborted) return undefined
  return use(async (dex) => {
    const finished = await runTool(tool, dexForCall(dex, { signal, _meta, client }, fresh), filled.ok)
    recordLater(finished)
    collectGarbageEarly()
    return callResult(tool, finished, asOf, filled.ok)
  })
}

/**
 * There are as many servers as running agents, and by default V8 lets 50 MB of garbage accumulate before it collects any. Not called
 * before the first tool has run: from here on V8 rejects the compiled code that Node has of its own modules, so that loading a
 * search and the thread would take a fifth more processor time.
 */
function collectGarbageEarly(): void {
  setFlagsFromString("--optimize-for-size")
  // In a small heap, V8's compiling threads wait for garbage collection more often, and Node may wait for them forever when it
  // exits (nodejs/node#54918).
  setFlagsFromString("--no-concurrent-sparkplug")
}

type FinishedRun = { output: unknown; removed: number; notes: string[] }

function callResult(
  tool: OfferedTool,
  { output, removed, notes }: FinishedRun,
  asOf: number | undefined,
  input: unknown,
): CallResult {
  const fresh_as_of = asOf === undefined ? undefined : new Date(asOf).toISOString()
  const freshness =
    tool.name === "guide"
      ? ""
      : `\nfresh_as_of: ${fresh_as_of ?? "not everything is read yet; call again later for more"}`
  // Hidden characters could be instructions for a model.
  const hidden =
    removed === 0 ? "" : `\nnote: ${removed} invisible ${removed === 1 ? "character was" : "characters were"} removed`
  return {
    output,
    text:
      [answerText(tool.mcp.name, output, offeredTools, input) ?? toJson(output), ...notes].join("\n") +
      hidden +
      freshness,
    fresh_as_of,
  }
}

/**
 * The context for one call. A server has no terminal, and therefore no last listing. It learns in the background while it answers
 * other calls.
 */
function dexForCall(dex: Dex, { signal, _meta, client }: CallContext, fresh: Freshness): Dex {
  return Object.create(dex, {
    signal: { value: signal },
    learnInBackground: { value: (extraFacts: ExtraFacts) => fresh.learn(extraFacts, LEARN_WITHIN_MS, signal) },
    lastListing: { value: () => ({ refs: [], words: [] }) },
    machine: { value: machineForCall(dex, _meta) },
    caller: { value: callerName(client) },
  })
}

async function freshAsOf(dex: Dex, fresh: Freshness): Promise<number | undefined> {
  const asOf = fresh.asOf()
  if (asOf !== undefined || !dex.hasHistory()) return asOf
  const progress = await (await dex.store()).progress()
  return progress && progress.done >= progress.total ? progress.at : undefined
}

/** Some clients send null for every field that was left out. */
function withoutNulls(input: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null))
}

function fieldsOf(tool: OfferedTool): string {
  const names = Object.keys(agentInputOf(tool).properties ?? {})
  return names.length === 0 ? "nothing" : names.join(", ")
}

/** The machine for one call: with the caller's session, if the caller sends it. */
function machineForCall({ machine }: Dex, meta: Record<string, unknown> | undefined): Dex["machine"] {
  for (const { session } of meta ? agents : []) {
    const id = session?.idFromCall?.(meta!)
    if (id !== undefined) return { ...machine, env: { ...machine.env, [session!.variable]: id } }
  }
  return machine
}
