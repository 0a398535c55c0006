import { existsSync } from "node:fs"
import { join } from "node:path"
import { createDex } from "../app/dex.ts"
import { waitForTraces } from "../app/run.ts"
import { dexHome } from "../config/home.ts"
import { DexError } from "../core/error.ts"
import { safe } from "../render/terminal.ts"
import { createApp } from "../serve/http/app.ts"
import { createTokenCheck, isLoopback, readOrCreateToken, type ServerAddress } from "../serve/http/guard.ts"
import { listen } from "../serve/http/listen.ts"
import { createFreshness } from "../serve/mcp/fresh.ts"
import { reuseDex } from "../serve/mcp/hold.ts"
import { endProcess, reserveStdout, type ServeOptions } from "../serve/mcp/serve.ts"
import { createServer } from "../serve/mcp/server.ts"
import { openSuggestions } from "../store/suggestions/suggestions.ts"
import { isPrivate, startDelivering } from "../tools/subscriptions/delivery.ts"

/** How long to wait for a sync that is still running when the server is stopped, in milliseconds. */
const LAST_SYNC_MS = 600
const HOST_NAME = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/i

/** Serves MCP over HTTP until it is stopped, then ends the process, even if something is still running or connected. */
export async function serveHttp({ version, env, cwd, ...address }: ServeOptions & ServerAddress): Promise<never> {
  checkAddress(address)
  reserveStdout() // sends what libraries print to stderr
  const log = (line: string) => void process.stderr.write(`dex: ${safe(line)}\n`)
  const home = dexHome(env)
  const tokenFile = join(home.dir, "http-token")
  const token = readOrCreateToken(tokenFile)

  const startOptions = { env: withoutSession(env), cwd, version }
  const fresh = createFreshness(startOptions, log)
  const use = reuseDex(() => createDex(startOptions))
  const openedSuggestions = openSuggestions(home.suggest)
  const suggestions = () => (existsSync(home.suggest) ? openedSuggestions : undefined)
  const mayBeSent = (project: string) => use(async (dex) => !(await isPrivate(dex, project)))
  const { app, close } = createApp({
    token,
    log,
    createServer: () => createServer({ version, use, fresh, log }),
    stream: { suggestions, mayBeSent },
  })
  const hasToken = createTokenCheck(token)
  const isOwner = (headers: { authorization?: string }) => hasToken(headers.authorization)
  const listening = await listen({ fetch: (request) => app.fetch(request), address, isOwner, log })
  const stopDelivering = startDelivering({ home, machine: { env }, version }, mayBeSent, log)
  process.on("uncaughtException", (error) => log(error.stack ?? String(error)))
  process.on("unhandledRejection", (reason) => log(String((reason as Error)?.stack ?? reason)))
  const shutDown = () => {
    void close()
    listening.close()
    const tasks = [fresh.stop(LAST_SYNC_MS), stopDelivering(), waitForTraces()] as const
    void Promise.all(tasks).then(([isIdle]) => endProcess(isIdle))
  }
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, shutDown)
  log(`Serving MCP at ${listening.url}/mcp. Ctrl-C stops it.`)
  log(`Requests need the header "Authorization: Bearer …" with the token in ${tokenFile}`)
  if (address.publicName !== undefined)
    log(`A proxy in front of dex must terminate TLS. Clients use https://${address.publicName}/mcp.`)
  void fresh.readNewMessages(0)
  return new Promise<never>(() => {})
}

function checkAddress({ host, publicName }: ServerAddress): void {
  if (publicName !== undefined && !HOST_NAME.test(publicName))
    throw new DexError(
      "usage",
      `--behind-tls needs the name that clients use, for example dex.example.com, not "${publicName}".`,
    )
  if (publicName === undefined && !isLoopback(host))
    throw new DexError(
      "usage",
      `On ${host}, this history and its token would be sent over the network unencrypted. Omit --host, or put a proxy that terminates TLS in front of dex and give the name that clients use: --behind-tls dex.example.com`,
    )
}

/** The environment without session ids: an HTTP client is not in the session in which this server was started. */
function withoutSession({ CLAUDE_CODE_SESSION_ID: _, CODEX_THREAD_ID: __, ...env }: ServeOptions["env"]) {
  return env
}
