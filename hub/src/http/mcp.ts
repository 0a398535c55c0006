import { type CallToolResult, createMcpHandler, Server } from "@modelcontextprotocol/server"
import { estimateTokens } from "../../../src/core/tokens.ts"
import { readInput } from "../../../src/core/tool.ts"
import { toJson } from "../../../src/render/json.ts"
import { safeLine } from "../../../src/render/terminal.ts"
import {
  agentInputOf,
  definitionOf,
  MAX_ANSWER_TOKENS,
  type OfferedTool,
  offeredTools,
} from "../../../src/serve/mcp/definitions.ts"
import { answerText } from "../../../src/serve/mcp/text.ts"
import { type TeamRequest, teamTools } from "../search/answer.ts"
import { throwLocation } from "../search/pool.ts"
import { databaseUnavailable, type Viewer } from "../store/connection.ts"
import { HubProblem } from "../store/problem.ts"

// The hub's MCP server is for agents on machines without dex. It has no sessions: every request identifies its viewer.

const INSTRUCTIONS =
  "What a team's coding agents said and did, shared by its members. Search when something may have been solved, decided or tried by a colleague before."

const mcpTools = teamTools.filter((tool): tool is OfferedTool => tool.mcp !== undefined)

export type TeamMcpParts = {
  ask(request: TeamRequest): Promise<unknown>
  version: string
  log(event: object): void
}

export function createTeamMcp({ ask, version, log }: TeamMcpParts) {
  const answer = async (viewer: Viewer, tool: OfferedTool, args: Record<string, unknown>): Promise<CallToolResult> => {
    const parsedInput = readInput(agentInputOf(tool), tool, args)
    if ("wrong" in parsedInput) return failure(`${parsedInput.wrong}.`)
    const output = await ask({ viewer, tool: tool.name, input: parsedInput.ok })
    const tokens = estimateTokens(toJson(output))
    if (tokens > MAX_ANSWER_TOKENS)
      return failure(`The answer would take about ${tokens} tokens. Ask for less: a smaller limit, or fewer ids.`)
    const text = answerText(tool.mcp.name, output, offeredTools, parsedInput.ok) ?? toJson(output)
    return { content: [{ type: "text", text }], structuredContent: output as Record<string, unknown> }
  }
  const handler = createMcpHandler(({ authInfo }) => {
    const viewer = authInfo!.extra!.viewer as Viewer
    const server = new Server(
      { name: "dex-hub", title: "dex hub: a team's memory", version },
      { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
    )
    server.setRequestHandler("tools/list", () => ({ tools: mcpTools.map(definitionOf) }))
    server.setRequestHandler("tools/call", async ({ params }) => {
      const tool = mcpTools.find((one) => one.mcp.name === params.name)
      if (!tool)
        return failure(`There is no such tool. The tools are ${mcpTools.map((one) => one.mcp.name).join(", ")}.`)
      try {
        return await answer(viewer, tool, params.arguments ?? {})
      } catch (error) {
        const problem = error instanceof HubProblem ? error : databaseUnavailable(error)
        if (problem) return failure(problem.message)
        log({ level: "error", event: "mcp", at: throwLocation((error as Error).stack ?? "") })
        return failure("Unexpected error. The hub's log shows the details.")
      }
    })
    return server
  })
  return {
    fetch: (request: Request, viewer: Viewer) =>
      handler.fetch(request, { authInfo: { token: "", clientId: viewer.name, scopes: ["read"], extra: { viewer } } }),
    close: () => handler.close(),
  }
}

function failure(text: string): CallToolResult {
  return { content: [{ type: "text", text: safeLine(text) }], isError: true }
}
