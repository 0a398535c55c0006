import { parseArgs } from "node:util"
import { VERSION } from "../app/version.ts"
import { isDexError } from "../core/error.ts"
import { terminalOf } from "../render/terminal.ts"
import { usageError } from "./args.ts"
import { say } from "./print/words.ts"

const HELP = {
  usage: "dex serve agent [options]",
  text: [
    "Serves one MCP tool, ask_documents, on stdin and stdout. It searches conversations and documents and returns only a short answer with its sources. `dex serve` serves the other tools.",
  ],
  options: [
    [
      "-c, --collections NAME",
      "Search only documents of these collections. Repeat the option, or separate names with commas.",
    ],
    ["    --no-global", "Leave out documents that belong to no project."],
    ["    --model NAME", "Use this model instead of llm.model."],
  ],
  examples: ["claude mcp add dex-ask -s user -- dex serve agent"],
} as const

/** Returns after printing help, or if the server could not start. Otherwise the server ends the process. */
export async function serveAgentCommand(words: string[]): Promise<number> {
  const { values } = parseFlags(words)
  if (values.help) return help()
  const collections = values.collections?.flatMap((names) => names.split(",").filter(Boolean))
  if (collections) await warnOfUnknown(collections)
  const { serve } = await import("../serve/mcp/serve.ts")
  const { createAgentServer } = await import("../serve/mcp/agent.ts")
  return serve({ version: VERSION, env: process.env, cwd: process.cwd() }, (parts) =>
    createAgentServer(parts, {
      collections,
      noGlobal: values["no-global"],
      model: values.model,
    }),
  )
}

/** The server starts anyway, because a collection may be added while it runs. */
async function warnOfUnknown(collections: string[]): Promise<void> {
  const { createDex } = await import("../app/dex.ts")
  const { requireVisibleCollections } = await import("../tools/docs/collections.ts")
  const dex = createDex({ version: VERSION, env: process.env, cwd: process.cwd() })
  try {
    for (const name of collections)
      await requireVisibleCollections(dex, [name]).catch((error) => {
        if (!isDexError(error)) throw error
        say(`${error.message} Until it exists, ask_documents finds nothing in it.`)
      })
  } finally {
    dex.close()
  }
}

async function help(): Promise<number> {
  const { pageHelp } = await import("./help.ts")
  process.stdout.write(pageHelp(HELP, terminalOf(process.stdout, process.env)))
  return 0
}

const FLAGS = {
  collections: { type: "string", short: "c", multiple: true },
  "no-global": { type: "boolean" },
  model: { type: "string" },
  help: { type: "boolean", short: "h" },
} as const

function parseFlags(args: string[]) {
  try {
    return parseArgs({ args, options: FLAGS })
  } catch (error) {
    throw usageError("serve agent", error as Error, args, FLAGS)
  }
}
