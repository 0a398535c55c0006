import { type CallToolResult, ProtocolError, ProtocolErrorCode, Server } from "@modelcontextprotocol/server"
import { runTool } from "../app/run.ts"
import { isDexError, messageOf } from "../core/error.ts"
import { read } from "../core/schema.ts"
import { estimateTokens } from "../core/tokens.ts"
import { toJson } from "../render/json.ts"
import { safeLine } from "../render/terminal.ts"
import type { Dex } from "../tools/context.ts"
import { tools } from "../tools/index.ts"
import { inCalls } from "./calls.ts"
import { definitionOf, INSTRUCTIONS, inputOf, isOffered, MOST_TOKENS, type Offered } from "./definitions.ts"
import type { Freshness } from "./fresh.ts"
import { machineOf } from "./session.ts"
import { textOf } from "./text.ts"

export type ServerParts = {
  version: string
  use<T>(work: (dex: Dex) => Promise<T>): Promise<T>
  fresh: Freshness
  log(line: string): void
}

/** What is new is waited for this long; the rest is read behind. */
const FRESH_WITHIN_MS = 100
/** Where nothing was ever read, an answer at once would be empty. */
const FIRST_READ_MS = 3_500

const offered = tools.filter(isOffered)

/** The tools over MCP, for one connection. Knows nothing of how messages get here. */
export function createServer(parts: ServerParts): Server {
  const server = new Server(
    { name: "dex", title: "dex: the memory that your coding agents share", version: parts.version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  )
  server.setRequestHandler("tools/list", () => ({ tools: offered.map(definitionOf) as never }))
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    const tool = offered.find((one) => one.mcp.name === params.name)
    if (!tool)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `There is no tool "${params.name.slice(0, 80)}". There are: ${offered.map((one) => one.mcp.name).join(", ")}.`,
      )
    return answer(tool, params.arguments ?? {}, mcpReq, parts)
  })
  return server
}

type Asked = { signal: AbortSignal; _meta?: Record<string, unknown> }

/** What goes wrong in a tool is an answer that says what to do, so that the model can. */
async function answer(
  tool: Offered,
  asked: Record<string, unknown>,
  { signal, _meta }: Asked,
  { use, fresh, log }: ServerParts,
): Promise<CallToolResult> {
  const input = read(inputOf(tool), withoutNulls(asked))
  if ("wrong" in input) return failure(`${input.wrong}. ${tool.mcp.name} takes: ${fieldsOf(tool)}.`)
  try {
    return await use(async (dex) => {
      if (tool.name !== "guide") await fresh.pickUp(dex.hasHistory() ? FRESH_WITHIN_MS : FIRST_READ_MS, signal)
      if (signal.aborted) return failure("Cancelled.")
      // Before the tool runs: what is read behind while it runs may not be in its answer.
      const asOf = tool.name === "guide" ? undefined : await freshAsOf(dex, fresh)
      const { output, record } = await runTool(tool as never, forOneCall(dex, signal, _meta), input.ok)
      setImmediate(() => void record())
      return success(tool, output, asOf)
    })
  } catch (error) {
    if (isDexError(error)) return failure(inCalls(error.message, offered))
    log((error as Error)?.stack ?? String(error))
    return failure(
      `An error that should not happen: ${messageOf(error)}. Try again; \`dex doctor\` in a shell checks dex.`,
    )
  }
}

/** A server belongs to no terminal: it has no last listing. */
function forOneCall(dex: Dex, signal: AbortSignal, meta: Asked["_meta"]): Dex {
  return Object.create(dex, {
    signal: { value: signal },
    lastListing: { value: () => [] },
    machine: { value: machineOf(dex, meta) },
  })
}

async function freshAsOf(dex: Dex, fresh: Freshness): Promise<number | undefined> {
  const own = fresh.asOf()
  if (own !== undefined || !dex.hasHistory()) return own
  const last = await (await dex.store()).progress()
  return last && last.done >= last.total ? last.at : undefined
}

function success(tool: Offered, output: unknown, asOf: number | undefined): CallToolResult {
  const json = toJson(output)
  const tokens = estimateTokens(json)
  if (tokens > MOST_TOKENS)
    return failure(
      `The answer would take about ${tokens} tokens; at most ${MOST_TOKENS} are given. Ask for less: a smaller limit, fewer ids, or a filter.`,
    )
  const fresh_as_of = asOf === undefined ? undefined : new Date(asOf).toISOString()
  const known =
    tool.name === "guide"
      ? ""
      : `\nfresh_as_of: ${fresh_as_of ?? "not everything is read yet; call again later for more"}`
  return {
    content: [{ type: "text", text: (textOf(tool.mcp.name, output, offered) ?? json) + known }],
    structuredContent: output as Record<string, unknown>,
    ...(fresh_as_of !== undefined && { _meta: { "dex/fresh_as_of": fresh_as_of } }),
  }
}

function failure(text: string): CallToolResult {
  return { content: [{ type: "text", text: safeLine(text) }], isError: true }
}

/** Some clients send null for every field that was left out. */
function withoutNulls(input: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null))
}

function fieldsOf(tool: Offered): string {
  const names = Object.keys(tool.input.properties ?? {})
  return names.length === 0 ? "nothing" : names.join(", ")
}
