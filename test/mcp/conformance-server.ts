import { setTimeout as after } from "node:timers/promises"
import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  createRequestStateCodec,
  inputRequired,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
  type ServerNotifier,
} from "@modelcontextprotocol/server"
import { createApp } from "../../src/serve/http/app.ts"
import { listen } from "../../src/serve/http/listen.ts"

// The tools, resources and prompts that the protocol's conformance suite requires, on dex's own HTTP: its routes, token, rate
// limit, Host and Origin checks, sessions and stateless serving. Only the MCP server behind them is different. Prints its URL and
// ends when stdin closes.

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
const SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
const PAUSE_MS = 50

type Arguments = Record<string, unknown>
type Answer = Record<string, unknown>
type Run = (args: Arguments, ctx: ServerContext) => Answer | Promise<Answer>
type Fixture = { description: string; inputSchema?: object; run: Run }

const text = (value: string): Answer => ({ content: [{ type: "text", text: value }] })
const image = { type: "image", data: PIXEL, mimeType: "image/png" }
const form = (properties: object, required = Object.keys(properties)) =>
  ({ type: "object", properties, required }) as never
const ask = (message: string, properties: object) =>
  inputRequired.elicit({ message, requestedSchema: form(properties) })
const sample = (question: string, maxTokens: number) =>
  inputRequired.createMessage({ messages: [{ role: "user", content: { type: "text", text: question } }], maxTokens })
const accepted = (ctx: ServerContext, key: string) => acceptedContent(ctx.mcpReq.inputResponses, key)
const responseTo = (ctx: ServerContext, key: string) => {
  const value = ctx.mcpReq.inputResponses?.[key]
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined
}
const needing = (inputRequests: Parameters<typeof inputRequired>[0]["inputRequests"], requestState?: string): Answer =>
  inputRequired({ inputRequests, ...(requestState !== undefined && { requestState }) })

const states = createRequestStateCodec<{ round: number }>({ key: "a key for the states of a fixture, long enough" })

/** Declared by the client: with each request, or when it initializes. */
const canDo = (server: Server, ctx: ServerContext, capability: "sampling" | "elicitation") => {
  const declared = (ctx.mcpReq.envelope as Record<string, object> | undefined)?.[CLIENT_CAPABILITIES_META_KEY]
  return capability in (declared ?? server.getClientCapabilities() ?? {})
}

function toolsOf(server: Server, notify: () => ServerNotifier): Record<string, Fixture> {
  const elicited = async (ctx: ServerContext, message: string, properties: object, required?: string[]) => {
    const { action, content } = await ctx.mcpReq.elicitInput({ message, requestedSchema: form(properties, required) })
    return `action=${action}, content=${JSON.stringify(content ?? {})}`
  }
  return {
    test_simple_text: { description: "Text", run: () => text("This is a simple text response for testing.") },
    test_image_content: { description: "An image", run: () => ({ content: [image] }) },
    test_audio_content: {
      description: "A sound",
      run: () => ({ content: [{ type: "audio", data: SILENCE, mimeType: "audio/wav" }] }),
    },
    test_embedded_resource: {
      description: "A resource",
      run: () => ({
        content: [
          {
            type: "resource",
            resource: {
              uri: "test://embedded-resource",
              mimeType: "text/plain",
              text: "This is an embedded resource content.",
            },
          },
        ],
      }),
    },
    test_multiple_content_types: {
      description: "Text, an image and a resource",
      run: () => ({
        content: [
          { type: "text", text: "Multiple content types test:" },
          image,
          {
            type: "resource",
            resource: {
              uri: "test://mixed-content-resource",
              mimeType: "application/json",
              text: JSON.stringify({ test: "data", value: 123 }),
            },
          },
        ],
      }),
    },
    test_error_handling: {
      description: "Always fails",
      run: () => ({ ...text("This tool intentionally returns an error for testing"), isError: true }),
    },
    test_tool_with_logging: {
      description: "Logs three times",
      run: async (_, { mcpReq }) => {
        await mcpReq.log("info", "Tool execution started")
        await after(PAUSE_MS)
        await mcpReq.log("info", "Tool processing data")
        await after(PAUSE_MS)
        await mcpReq.log("info", "Tool execution completed")
        return text("Logged three times.")
      },
    },
    test_logging_tool: {
      description: "Logs once",
      run: async (_, { mcpReq }) => {
        await mcpReq.log("info", "Logged")
        return text("Logged once, for whoever asked for it.")
      },
    },
    test_tool_with_progress: {
      description: "Tells its progress",
      run: async (_, { mcpReq }) => {
        const progressToken = mcpReq._meta?.progressToken
        for (const progress of [0, 50, 100]) {
          if (progressToken !== undefined)
            await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } })
          if (progress < 100) await after(PAUSE_MS)
        }
        return text(String(progressToken))
      },
    },
    test_sampling: {
      description: "Asks the client's model",
      inputSchema: { type: "object", properties: { prompt: { type: "string" } }, required: ["prompt"] },
      run: async ({ prompt }, { mcpReq }) => {
        const { content } = await mcpReq.requestSampling({
          messages: [{ role: "user", content: { type: "text", text: String(prompt) } }],
          maxTokens: 100,
        })
        const block = Array.isArray(content) ? content[0] : content
        return text(`LLM response: ${block?.type === "text" ? block.text : "not text"}`)
      },
    },
    test_elicitation: {
      description: "Asks the person",
      inputSchema: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
      run: async ({ message }, ctx) =>
        text(
          `User response: ${await elicited(ctx, String(message), {
            username: { type: "string", description: "User's response" },
            email: { type: "string", description: "User's email address" },
          })}`,
        ),
    },
    test_elicitation_sep1034_defaults: {
      description: "Asks with defaults",
      run: async (_, ctx) =>
        text(
          `Elicitation completed: ${await elicited(
            ctx,
            "Is this right?",
            {
              name: { type: "string", default: "John Doe" },
              age: { type: "integer", default: 30 },
              score: { type: "number", default: 95.5 },
              status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
              verified: { type: "boolean", default: true },
            },
            [],
          )}`,
        ),
    },
    test_elicitation_sep1330_enums: {
      description: "Asks with choices",
      run: async (_, ctx) => {
        const options = ["option1", "option2", "option3"]
        const titled = (noun: string) =>
          ["First", "Second", "Third"].map((title, i) => ({ const: `value${i + 1}`, title: `${title} ${noun}` }))
        return text(
          `Elicitation completed: ${await elicited(
            ctx,
            "Which of these?",
            {
              untitledSingle: { type: "string", enum: options },
              titledSingle: { type: "string", oneOf: titled("Option") },
              legacyEnum: {
                type: "string",
                enum: ["opt1", "opt2", "opt3"],
                enumNames: ["Option One", "Option Two", "Option Three"],
              },
              untitledMulti: { type: "array", items: { type: "string", enum: options } },
              titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
            },
            [],
          )}`,
        )
      },
    },
    test_missing_capability: {
      description: "Needs a client with sampling",
      run: (_, ctx) => {
        if (!canDo(server, ctx, "sampling"))
          throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } })
        return text("The client has sampling.")
      },
    },
    test_streaming_elicitation: {
      description: "Asks the person within its answer",
      run: (_, ctx) => {
        const answer = accepted(ctx, "answer")
        return answer ? text(JSON.stringify(answer)) : needing({ answer: ask("Go on?", { ok: { type: "boolean" } }) })
      },
    },
    test_trigger_tool_change: {
      description: "Says that the tools have changed",
      run: () => {
        notify().toolsChanged()
        return text("Said.")
      },
    },
    test_trigger_prompt_change: {
      description: "Says that the prompts have changed",
      run: () => {
        notify().promptsChanged()
        return text("Said.")
      },
    },
    ...inputTools(server),
    json_schema_2020_12_tool: {
      description: "Tool with JSON Schema 2020-12 features",
      inputSchema: {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        $defs: {
          address: {
            $anchor: "addressDef",
            type: "object",
            properties: { street: { type: "string" }, city: { type: "string" } },
          },
        },
        properties: {
          name: { type: "string" },
          address: { $ref: "#/$defs/address" },
          contactMethod: { type: "string", enum: ["phone", "email"] },
          phone: { type: "string" },
          email: { type: "string" },
        },
        allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
        if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
        // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
        then: { required: ["phone"] },
        else: { required: ["email"] },
        additionalProperties: false,
      },
      run: () => text("Taken."),
    },
  }
}

/** Tools that first answer with a question, and continue when they are called again with its answer. */
function inputTools(server: Server): Record<string, Fixture> {
  const name = () => ask("What is your name?", { name: { type: "string" } })
  const confirm = () => ask("Please confirm", { ok: { type: "boolean" } })
  const confirmed: Run = async (_, ctx) => {
    const round = ctx.mcpReq.requestState<{ round: number }>()?.round
    if (round === 1 && accepted(ctx, "confirm")) return text("state-ok")
    return needing({ confirm: confirm() }, await states.mint({ round: 1 }))
  }
  return {
    test_input_required_result_elicitation: {
      description: "Asks for a name",
      run: (_, ctx) => {
        const given = accepted(ctx, "user_name")?.name
        return typeof given === "string" ? text(`Hello, ${given}!`) : needing({ user_name: name() })
      },
    },
    test_input_required_result_sampling: {
      description: "Asks the client's model for a capital",
      run: (_, ctx) => {
        const given = responseTo(ctx, "capital_question")
        return given
          ? text(JSON.stringify(given.content))
          : needing({ capital_question: sample("What is the capital of France?", 100) })
      },
    },
    test_input_required_result_list_roots: {
      description: "Asks for the client's roots",
      run: (_, ctx) => {
        const given = responseTo(ctx, "client_roots")
        return given ? text(JSON.stringify(given.roots)) : needing({ client_roots: inputRequired.listRoots() })
      },
    },
    test_input_required_result_request_state: { description: "Remembers with the client", run: confirmed },
    test_input_required_result_tampered_state: { description: "Notices what was changed", run: confirmed },
    test_input_required_result_multiple_inputs: {
      description: "Asks three things at once",
      run: async (_, ctx) => {
        const given = ["user_name", "greeting", "client_roots"].map((key) => responseTo(ctx, key))
        if (given.every(Boolean)) return text(JSON.stringify(given))
        return needing(
          {
            user_name: name(),
            greeting: sample("Generate a greeting", 50),
            client_roots: inputRequired.listRoots(),
          },
          await states.mint({ round: 1 }),
        )
      },
    },
    test_input_required_result_multi_round: {
      description: "Asks two things, one after the other",
      run: async (_, ctx) => {
        const round = ctx.mcpReq.requestState<{ round: number }>()?.round ?? 0
        if (round === 2 && accepted(ctx, "step2")) return text("Both steps are done.")
        if (round === 1 && accepted(ctx, "step1"))
          return needing(
            { step2: ask("Step 2: What is your favorite color?", { color: { type: "string" } }) },
            await states.mint({ round: 2 }),
          )
        return needing(
          { step1: ask("Step 1: What is your name?", { name: { type: "string" } }) },
          await states.mint({ round: 1 }),
        )
      },
    },
    test_input_required_result_capabilities: {
      description: "Asks only what the client can answer",
      run: (_, ctx) =>
        needing({
          ...(canDo(server, ctx, "elicitation") && { user_name: name() }),
          ...(canDo(server, ctx, "sampling") && { greeting: sample("Generate a greeting", 50) }),
        }),
    },
  }
}

const RESOURCES: Record<string, { mimeType: string; text: string } | { mimeType: string; blob: string }> = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PIXEL },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched." },
}

function read(uri: string): Answer {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  const content =
    id === undefined
      ? RESOURCES[uri]
      : { mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }
  if (!content) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "Resource not found", { uri })
  return { contents: [{ uri, ...content }] }
}

type Prompt = { description: string; arguments?: { name: string; required: boolean }[]; run: Run }
const message = (content: object) => ({ role: "user", content })
const words = (value: string) => message({ type: "text", text: value })

const PROMPTS: Record<string, Prompt> = {
  test_simple_prompt: {
    description: "Simple",
    run: () => ({ messages: [words("This is a simple prompt for testing.")] }),
  },
  test_prompt_with_arguments: {
    description: "With arguments",
    arguments: ["arg1", "arg2"].map((name) => ({ name, required: true })),
    run: ({ arg1, arg2 }) => ({ messages: [words(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] }),
  },
  test_prompt_with_embedded_resource: {
    description: "With a resource",
    arguments: [{ name: "resourceUri", required: true }],
    run: ({ resourceUri }) => ({
      messages: [
        message({
          type: "resource",
          resource: { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." },
        }),
        words("Please process the embedded resource above."),
      ],
    }),
  },
  test_prompt_with_image: {
    description: "With an image",
    run: () => ({ messages: [message(image), words("Please analyze the image above.")] }),
  },
  test_input_required_result_prompt: {
    description: "Asks first",
    run: (_, ctx) => {
      const context = accepted(ctx, "user_context")?.context
      return typeof context === "string"
        ? { messages: [words(`In this context: ${context}`)] }
        : needing({ user_context: ask("What context should the prompt use?", { context: { type: "string" } }) })
    },
  },
}

function createServer(notify: () => ServerNotifier): Server {
  const server = new Server(
    { name: "conformance", version: "1.0.0" },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true },
        logging: {},
        completions: {},
      },
      requestState: { verify: states.verify },
    },
  )
  const tools = toolsOf(server, notify)
  const unknown = (what: string) => new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no ${what}.`)
  server.setRequestHandler("tools/list", () => ({
    tools: Object.entries(tools).map(([name, { description, inputSchema = { type: "object" } }]) => ({
      name,
      description,
      inputSchema: inputSchema as { type: "object" },
    })),
  }))
  server.setRequestHandler("tools/call", async ({ params }, ctx) => {
    const tool = tools[params.name]
    if (!tool) throw unknown(`tool ${params.name}`)
    return (await tool.run(params.arguments ?? {}, ctx)) as never
  })
  server.setRequestHandler("resources/list", () => ({
    resources: Object.entries(RESOURCES).map(([uri, { mimeType }]) => ({ uri, name: uri, description: uri, mimeType })),
  }))
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template", description: "By its id" }],
  }))
  server.setRequestHandler("resources/read", ({ params }) => read(params.uri) as never)
  server.setRequestHandler("resources/subscribe", () => ({}))
  server.setRequestHandler("resources/unsubscribe", () => ({}))
  server.setRequestHandler("prompts/list", () => ({
    prompts: Object.entries(PROMPTS).map(([name, { run: _, ...prompt }]) => ({ name, ...prompt })),
  }))
  server.setRequestHandler("prompts/get", async ({ params }, ctx) => {
    const prompt = PROMPTS[params.name]
    if (!prompt) throw unknown(`prompt ${params.name}`)
    return (await prompt.run(params.arguments ?? {}, ctx)) as never
  })
  server.setRequestHandler("completion/complete", () => ({ completion: { values: [], total: 0, hasMore: false } }))
  return server
}

const log = (line: string) => void process.stderr.write(`${line}\n`)
const token = "the-token-of-a-fixture"
const made = createApp({ token, log, createServer: () => createServer(() => made.notify) })
// The suite cannot send its own token, so it is added here, and checked afterwards as usual.
const withToken = (request: Request) => {
  request.headers.set("authorization", `Bearer ${token}`)
  return made.app.fetch(request)
}
const { url, close } = await listen({
  fetch: withToken,
  address: { host: "127.0.0.1", port: 0 },
  isOwner: () => true,
  log,
})
process.stdout.write(`${url}/mcp\n`)
process.stdin.resume().on("end", () => {
  void made.close()
  close()
})
