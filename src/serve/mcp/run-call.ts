import { agents } from "../../agents/registry.ts"
import { runTool } from "../../app/run.ts"
import { callerName } from "../../core/caller-name.ts"
import { DexError } from "../../core/error.ts"
import { readAs } from "../../core/schema.ts"
import { toJson } from "../../render/json.ts"
import type { AlsoRead, Dex } from "../../tools/context.ts"
import { inputOf, type Offered, offered } from "./definitions.ts"
import type { Freshness } from "./fresh.ts"
import { answerText } from "./text.ts"

export type ServerParts = {
  version: string
  use<T>(work: (dex: Dex) => Promise<T>): Promise<T>
  fresh: Freshness
  log(line: string): void
}

/** `client`: as the program that asks calls itself. */
export type CallContext = { signal: AbortSignal; _meta?: Record<string, unknown>; client?: string }

/** What a tool answered: as data, and as a model reads it. */
export type CallResult = { output: unknown; text: string; fresh_as_of?: string }

/** What is new is waited for this long; the rest is read behind. */
const FRESH_WITHIN_MS = 100
/** Where nothing was ever read, an answer at once would be empty. */
const FIRST_READ_MS = 3_500
/** What is learned by then is told; the rest is learned behind. */
const LEARN_WITHIN_MS = 1_000

/**
 * Runs a tool for one request, after what is new was picked up. Throws what the tool throws, and a DexError for input that
 * is wrong. Undefined: cancelled before it began.
 */
export async function runCall(
  tool: Offered,
  input: Record<string, unknown>,
  { signal, _meta, client }: CallContext,
  { use, fresh }: ServerParts,
): Promise<CallResult | undefined> {
  const checked = readAs(inputOf(tool), withoutNulls(input))
  if ("wrong" in checked) throw new DexError("usage", `${checked.wrong}. ${tool.mcp.name} takes: ${fieldsOf(tool)}.`)
  // Fields that agents are not given have their defaults.
  const filled = tool.mcp.omit ? readAs(tool.input, checked.ok) : checked
  if ("wrong" in filled) throw new DexError("usage", filled.wrong)
  // Before the tool runs, and before its files are opened: what is read behind meanwhile may not be in its answer.
  const asOf = await use(async (dex) => {
    if (tool.name === "guide") return undefined
    await fresh.pickUp(dex.hasHistory() ? FRESH_WITHIN_MS : FIRST_READ_MS, signal)
    return signal.aborted ? undefined : freshAsOf(dex, fresh)
  })
  if (signal.aborted) return undefined
  return use(async (dex) => {
    const ran = await runTool(tool, forOneCall(dex, { signal, _meta, client }, fresh), filled.ok)
    setImmediate(() => void ran.record())
    return callResult(tool, ran, asOf, filled.ok)
  })
}

type Ran = { output: unknown; removed: number; notes: string[] }

function callResult(
  tool: Offered,
  { output, removed, notes }: Ran,
  asOf: number | undefined,
  input: unknown,
): CallResult {
  const fresh_as_of = asOf === undefined ? undefined : new Date(asOf).toISOString()
  const known =
    tool.name === "guide"
      ? ""
      : `\nfresh_as_of: ${fresh_as_of ?? "not everything is read yet; call again later for more"}`
  // Whoever hid something meant a model to read it.
  const hidden =
    removed === 0 ? "" : `\nnote: ${removed} invisible ${removed === 1 ? "character was" : "characters were"} removed`
  return {
    output,
    text: [answerText(tool.mcp.name, output, offered, input) ?? toJson(output), ...notes].join("\n") + hidden + known,
    fresh_as_of,
  }
}

/** A server belongs to no terminal: it has no last listing. What there is to learn is learned beside its other answers. */
function forOneCall(dex: Dex, { signal, _meta, client }: CallContext, fresh: Freshness): Dex {
  return Object.create(dex, {
    signal: { value: signal },
    learnBehind: { value: (also: AlsoRead) => fresh.learn(also, LEARN_WITHIN_MS, signal) },
    lastListing: { value: () => ({ refs: [], words: [] }) },
    machine: { value: machineOf(dex, _meta) },
    caller: { value: callerName(client) },
  })
}

async function freshAsOf(dex: Dex, fresh: Freshness): Promise<number | undefined> {
  const own = fresh.asOf()
  if (own !== undefined || !dex.hasHistory()) return own
  const last = await (await dex.store()).progress()
  return last && last.done >= last.total ? last.at : undefined
}

/** Some clients send null for every field that was left out. */
function withoutNulls(input: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null))
}

function fieldsOf(tool: Offered): string {
  const names = Object.keys(inputOf(tool).properties ?? {})
  return names.length === 0 ? "nothing" : names.join(", ")
}

/** The machine as this call sees it: with the caller's session, where the caller tells it. */
function machineOf({ machine }: Dex, meta: Record<string, unknown> | undefined): Dex["machine"] {
  for (const { session } of meta ? agents : []) {
    const id = session?.inCall?.(meta!)
    if (id !== undefined) return { ...machine, env: { ...machine.env, [session!.variable]: id } }
  }
  return machine
}
