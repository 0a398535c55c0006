import { DexError } from "../core/error.ts"
import { serve } from "../mcp/serve.ts"
import { VERSION } from "./version.ts"

const HELP = `dex serve

Gives an agent this memory over MCP, on stdin and stdout, until stdin closes. Agents start it themselves: give them the
command "dex serve". It has the tools dex_search, dex_timeline, dex_get, dex_list, dex_stats and dex_guide.

Example: claude mcp add dex -s user -- dex serve
`

/** Does not come back: the server ends the process, whatever is still running. */
export async function serveCommand(args: string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(HELP)
    return 0
  }
  if (args[0] !== undefined) throw new DexError("usage", `dex serve takes no "${args[0]}". See: dex serve --help`)
  if (process.stdin.isTTY)
    process.stderr.write("dex serves MCP here: it waits for an agent's messages on stdin. Ctrl-D ends it.\n")
  return serve({ version: VERSION, env: process.env, cwd: process.cwd() })
}
