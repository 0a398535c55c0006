import { parseArgs } from "node:util"
import { VERSION } from "../app/version.ts"
import { DexError } from "../core/error.ts"
import { terminalOf } from "../render/terminal.ts"
import { usageError } from "./args.ts"

const OPTIONS = [
  ["    --port N", "Serve HTTP on this port; 0 picks a free one. The address is printed at the start."],
  ["    --host ADDRESS", "Listen on this address of this machine. Default: 127.0.0.1."],
  [
    "    --behind-tls NAME",
    "TLS is terminated in front of dex, and clients use https://NAME. Required if --host is an address that other machines can reach.",
  ],
] as const

async function help(): Promise<string> {
  const [{ pageHelp }, { offeredTools }] = await Promise.all([
    import("./help.ts"),
    import("../serve/mcp/definitions.ts"),
  ])
  const names = offeredTools.map(({ mcp }) => mcp.name)
  return pageHelp(
    {
      usage: "dex serve [options]",
      text: [
        `Serves this memory to agents over MCP, with the tools ${names.slice(0, -1).join(", ")} and ${names.at(-1)}.`,
        'Without options it speaks on stdin and stdout until stdin closes. Agents start it themselves: give them the command "dex serve".',
        "With --port it serves streamable HTTP at /mcp until it is stopped with Ctrl-C. Every request must contain the token in the file http-token in dex's folder (~/.dex, or DEX_HOME); the first start creates the file. Suggestions for subscriptions are streamed at /suggestions, and sent to webhooks (see dex subscribe).",
        "`dex serve agent` serves one tool instead, ask_documents, which answers a question. Its options: dex serve agent --help",
      ],
      options: OPTIONS,
      examples: ["claude mcp add dex -s user -- dex serve", "dex serve --port 7337"],
    },
    terminalOf(process.stdout, process.env),
  )
}

/** Returns after printing help, or if the server could not start. Otherwise the server ends the process. */
export async function serveCommand(args: string[]): Promise<number> {
  if (args[0] === "agent") return (await import("./serve-agent.ts")).serveAgentCommand(args.slice(1))
  const { help: wantsHelp, port, host, "behind-tls": publicName } = parseFlags(args)
  if (wantsHelp) {
    process.stdout.write(await help())
    return 0
  }
  const startOptions = { version: VERSION, env: process.env, cwd: process.cwd() }
  if (port !== undefined) {
    const { serveHttp } = await import("./serve-http.ts")
    return serveHttp({ ...startOptions, port: portOf(port), host: host ?? "127.0.0.1", publicName })
  }
  if (host !== undefined || publicName !== undefined)
    throw new DexError("usage", "--host and --behind-tls are for HTTP. Give a port too: dex serve --port 7337 …")
  if (process.stdin.isTTY)
    process.stderr.write("dex is serving MCP: it waits for an agent's messages on stdin. Ctrl-D stops it.\n")
  const { serve } = await import("../serve/mcp/serve.ts")
  return serve(startOptions)
}

const FLAGS = {
  help: { type: "boolean", short: "h" },
  port: { type: "string" },
  host: { type: "string" },
  "behind-tls": { type: "string" },
} as const

function parseFlags(args: string[]) {
  try {
    return parseArgs({ args, options: FLAGS }).values
  } catch (error) {
    throw usageError("serve", error as Error, args, FLAGS)
  }
}

function portOf(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new DexError("usage", `--port needs a number from 0 to 65535, not "${text}". 0 picks a free one.`)
  return port
}
