import {
  type CallToolResult,
  CLIENT_INFO_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
  Server,
} from "@modelcontextprotocol/server"
import { isDexError, messageOf } from "../core/error.ts"
import { record, string } from "../core/record.ts"
import { estimateTokens } from "../core/tokens.ts"
import { toJson } from "../render/json.ts"
import { safeLine } from "../render/terminal.ts"
import { inCalls } from "./calls.ts"
import { definitionOf, INSTRUCTIONS, MOST_ANSWER_TOKENS, type Offered, offered } from "./definitions.ts"
import { getPrompt, listPrompts } from "./prompts.ts"
import { listResources, readResource, TEMPLATES } from "./resources.ts"
import { type CallContext, runCall, type ServerParts } from "./run-call.ts"

/** What dex offers over MCP, for one connection: tools, resources, prompts. Knows nothing of how messages get here. */
export function createServer(parts: ServerParts): Server {
  const server = new Server(
    { name: "dex", title: "dex: the memory that your coding agents share", version: parts.version },
    { capabilities: { tools: {}, resources: {}, prompts: {} }, instructions: INSTRUCTIONS },
  )
  offerTools(server, offered, parts)
  server.setRequestHandler("resources/list", ({ params }, { mcpReq }) => listResources(params?.cursor, mcpReq, parts))
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: TEMPLATES }))
  server.setRequestHandler("resources/read", ({ params }, { mcpReq }) => readResource(params.uri, mcpReq, parts))
  const home = () => parts.use(async (dex) => dex.home.dir)
  server.setRequestHandler("prompts/list", async () => ({ prompts: await listPrompts(await home()) }))
  server.setRequestHandler("prompts/get", async ({ params }) =>
    getPrompt(params.name, params.arguments ?? {}, await home()),
  )
  return server
}

export function offerTools(server: Server, tools: readonly Offered[], parts: ServerParts): void {
  server.setRequestHandler("tools/list", () => ({ tools: tools.map(definitionOf) as never }))
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    const tool = tools.find((one) => one.mcp.name === params.name)
    if (!tool)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `There is no tool "${params.name.slice(0, 80)}". There are: ${tools.map((one) => one.mcp.name).join(", ")}.`,
      )
    const { signal, _meta, envelope } = mcpReq
    const client = nameIn(envelope) ?? server.getClientVersion()?.name
    const asked = { signal, ...(_meta && { _meta }), ...(client !== undefined && { client }) }
    return answer(tool, params.arguments ?? {}, asked, parts)
  })
}

/** Clients that hold no connection say in each request who they are. */
function nameIn(envelope: object | undefined): string | undefined {
  return string(record((envelope as Record<string, unknown> | undefined)?.[CLIENT_INFO_META_KEY])?.name)
}

/** What goes wrong in a tool is an answer that says what to do, so that the model can. */
async function answer(
  tool: Offered,
  input: Record<string, unknown>,
  asked: CallContext,
  parts: ServerParts,
): Promise<CallToolResult> {
  try {
    const told = await runCall(tool, input, asked, parts)
    if (!told) return failure("Cancelled.")
    const tokens = estimateTokens(toJson(told.output))
    if (tokens > MOST_ANSWER_TOKENS)
      return failure(
        `The answer would take about ${tokens} tokens; at most ${MOST_ANSWER_TOKENS} are given. Ask for less: a smaller limit, fewer ids, or a filter.`,
      )
    return {
      content: [{ type: "text", text: told.text }],
      structuredContent: told.output as Record<string, unknown>,
      ...(told.fresh_as_of !== undefined && { _meta: { "dex/fresh_as_of": told.fresh_as_of } }),
    }
  } catch (error) {
    if (isDexError(error)) return failure(inCalls(error.message, offered))
    parts.log((error as Error)?.stack ?? String(error))
    return failure(
      `An error that should not happen: ${messageOf(error)}. Try again; \`dex doctor\` in a shell checks dex.`,
    )
  }
}

function failure(text: string): CallToolResult {
  return { content: [{ type: "text", text: safeLine(text) }], isError: true }
}
