import { agentOf } from "../agents/registry.ts"
import { isDexError, messageOf } from "../core/error.ts"
import type { Schema } from "../core/schema.ts"
import type { Tool } from "../core/tool.ts"
import type { Trace, TraceFacts, TraceRow } from "../core/trace.ts"
import type { Dex } from "./context.ts"

/** The result of a tool's run. Its trace is created on request. */
export type ObservedRun = { ended: { output: unknown } | { error: unknown }; trace(): Promise<Trace> }

export type TracedTool = Tool<Dex> & { trace: NonNullable<Tool<Dex>["trace"]> }

export function isTraced(tool: Tool<Dex>): tool is TracedTool {
  return tool.trace !== undefined
}

/** Runs a tool and records what happens. Never throws: an error is part of the result. */
export async function observe(tool: TracedTool, dex: Dex, input: unknown): Promise<ObservedRun> {
  // `performance` would load a module of Node's.
  const started = process.hrtime()
  const ts = new Date().toISOString()
  const request = argsOf(tool, dex, input as Record<string, unknown>)
  const reportedFacts: TraceFacts[] = []
  // This object inherits from `dex`, so that both share values that are computed on first use.
  const observedDex: Dex = Object.create(dex, {
    trace: { value: (facts: TraceFacts) => void reportedFacts.push(facts) },
  })
  let ended: ObservedRun["ended"]
  try {
    ended = { output: await tool.run(observedDex, input) }
  } catch (error) {
    ended = { error }
  }
  const [seconds, nanoseconds] = process.hrtime(started)
  const duration_ms = Math.round(seconds * 10_000 + nanoseconds / 100_000) / 10
  const trace = async (): Promise<Trace> => {
    const outputFacts = "output" in ended ? tool.trace.facts?.(input, ended.output) : undefined
    const {
      args,
      ranking = [],
      skipped = [],
      skipped_total,
      inputs,
      budgets,
      mode,
      truncation,
    } = mergeFacts([...(outputFacts ? [outputFacts] : []), ...reportedFacts])
    const error = "error" in ended ? { error: errorOf(ended.error) } : {}
    return {
      trace_id: newTraceId(),
      ts,
      command: tool.trace.command,
      ...(await redactTyped({
        args: { ...resolveCurrent(request.args, ranking), ...args },
        ...request.query,
        ...error,
      })),
      mode,
      project: dex.project,
      inputs: inputs ?? {},
      ranking,
      ranking_total: ranking.length,
      skipped,
      skipped_total: skipped_total ?? skipped.length,
      budgets: { ...request.budgets, ...budgets },
      truncation,
      state_revision: await revisionOf(dex),
      duration_ms,
    }
  }
  return { ended, trace }
}

/** Merges the facts that a tool reported. Later ones override earlier ones. */
function mergeFacts(reportedFacts: TraceFacts[]): TraceFacts {
  const merged = (field: "args" | "inputs" | "budgets" | "truncation") =>
    Object.assign({}, ...reportedFacts.map((facts) => facts[field]))
  const truncation = reportedFacts.some((facts) => facts.truncation) ? { truncation: merged("truncation") } : {}
  return {
    ...(Object.assign({}, ...reportedFacts) as TraceFacts),
    args: merged("args"),
    inputs: merged("inputs"),
    budgets: merged("budgets"),
    ...truncation,
  }
}

const BUDGET_INPUTS = ["limit", "max_tokens", "tokens_per_msg", "before", "after"]
/** Inputs that name conversations. Row numbers in them are replaced by refs, because the next listing changes their meaning. */
const REF_INPUTS = ["id", "ids", "ref", "conversation", "session"]

function argsOf(tool: TracedTool, dex: Dex, { query, ...input }: Record<string, unknown>) {
  const args = Object.entries(withoutDefaults(tool.input, input) ?? {}).map(([key, value]) => [
    key,
    REF_INPUTS.includes(key) ? resolveRowNumbers(dex, value) : value,
  ])
  const budgets = Object.entries(input).filter(
    ([key, value]) => BUDGET_INPUTS.includes(key) && typeof value === "number",
  )
  return {
    args: Object.fromEntries(args) as Record<string, unknown>,
    budgets: Object.fromEntries(budgets) as Record<string, number>,
    query: typeof query === "string" ? { query } : {},
  }
}

/** Returns the input without the values that equal their default. Undefined if nothing is left. */
function withoutDefaults(schema: Schema, value: Record<string, unknown>): Record<string, unknown> | undefined {
  const entries = Object.entries(value).flatMap(([key, inner]): [string, unknown][] => {
    const field = schema.properties?.[key]
    if (inner === undefined || JSON.stringify(inner) === JSON.stringify(field?.default)) return []
    if (field?.properties === undefined) return [[key, inner]]
    const rest = withoutDefaults(field, inner as Record<string, unknown>)
    return rest === undefined ? [] : [[key, rest]]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

function resolveRowNumbers(dex: Dex, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => resolveRowNumbers(dex, item))
  const row = typeof value === "string" && /^\s*\d{1,3}\s*$/.test(value) ? Number(value) : 0
  return (row > 0 ? dex.lastListing().refs[row - 1] : undefined) ?? value
}

/** Replaces `current` with the conversation that was read, because `current` means another conversation later. */
function resolveCurrent(args: Record<string, unknown>, ranking: TraceRow[]): Record<string, unknown> {
  const [only, ...others] = ranking
  if (!only || others.length > 0) return args
  const conversation = only.ref.replace(/#\d+$/, "")
  const replaceCurrent = (value: unknown): unknown =>
    typeof value === "string"
      ? value.replace(/^current(?=#|$)/, conversation)
      : Array.isArray(value)
        ? value.map(replaceCurrent)
        : value
  return Object.fromEntries(
    Object.entries(args).map(([key, value]) => [key, REF_INPUTS.includes(key) ? replaceCurrent(value) : value]),
  )
}

type TypedTexts = Pick<Trace, "args" | "query" | "error">

/**
 * True if all texts are ordinary words, as in most queries, or refs, as most of `dex show`. No rule could find a secret in them, so
 * the rules, which take time to load, are not needed.
 */
export function isPlainText(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.values(value).every(isPlainText)
  if (typeof value !== "string") return true
  if (/ (?:is|was) /i.test(value)) return false
  const [, source] = REF.exec(value) ?? []
  if (source !== undefined && agentOf(source) !== undefined) return true
  return (
    /^(?:\p{L}{1,20}(?: |$))*$/u.test(value) || (/^(?:[\w.-]{1,15}(?: |$))*$/.test(value) && !SECRET_NAME.test(value))
  )
}

/** Matches a ref whose conversation has a UUID, as those of most agents. */
const REF = /^([a-z_]+):[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?:#\d{1,9})?$/

/** Matches words whose following text may be a secret, however short it is. */
const SECRET_NAME =
  /pass|pwd|pw\b|secret|token|key|cred|auth|cookie|jwt|bearer|basic|wort|mdp|clave|senha|login|sshpass|-[pua]\b/i

/** Redacts the arguments, the query and the error, because people paste secrets into searches. */
async function redactTyped(typed: TypedTexts): Promise<TypedTexts> {
  if (Object.values(typed).every(isPlainText)) return typed
  const { redactRecord } = await import("../redact/redact.ts")
  return redactRecord(JSON.parse(JSON.stringify(typed))).record as TypedTexts
}

function errorOf(error: unknown): { code: string; message: string } {
  return { code: isDexError(error) ? error.code : "unexpected", message: messageOf(error) }
}

/** The revision of the history. Empty if there is no history or it cannot be read. */
async function revisionOf(dex: Dex): Promise<string> {
  try {
    return dex.hasHistory() ? await (await dex.store()).revision() : ""
  } catch {
    return ""
  }
}

function newTraceId(): string {
  const fourDigits = () =>
    Math.floor(Math.random() * 0x10000)
      .toString(16)
      .padStart(4, "0")
  return `T-${fourDigits()}${fourDigits()}${fourDigits()}${fourDigits()}`
}
