import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { codeOf } from "../../src/core/error.ts"
import hub from "../package.json" with { type: "json" }
import { checkCommands } from "./commands/check.ts"
import { type Commands, type Flags, say } from "./commands/commands.ts"
import { movedCommands } from "./commands/moved.ts"
import { peopleCommands } from "./commands/people.ts"
import { createHubApp } from "./http/app.ts"
import { createMetricsApp } from "./http/metrics.ts"
import { serveApp } from "./http/serve.ts"
import { expireHourly } from "./jobs/expire.ts"
import { createKeyRemover } from "./jobs/forget-keys.ts"
import { scanByNewerRules } from "./jobs/scan-again.ts"
import { createMetrics } from "./metrics.ts"
import { openChecker } from "./push/checker.ts"
import { watchReadiness } from "./ready.ts"
import { openSearch } from "./search/pool.ts"
import { outdatedSettings, ownerFrom, SettingsProblem, settingsFrom } from "./settings.ts"
import { databaseUnavailable, openDatabase } from "./store/connection.ts"
import { migrate } from "./store/migrate.ts"
import { firstOperator } from "./store/operators.ts"
import { asOwner } from "./store/owner.ts"

const VERSION = hub.version
/** How long a stop waits for jobs and the index after the last request has ended, in milliseconds. */
const STOP_TIMEOUT_MS = 10_000

const OWNER_NOTE =
  "`dex-hub serve` does not use DEX_HUB_OWNER_URL. Remove it from its environment, so that a hub that was broken into cannot change the tables."

const HELP = `dex-hub: a team's memory on PostgreSQL

  dex-hub migrate                         makes or updates the tables
  dex-hub init [NAME]                     prints a one-time code for the first operator; --locked-out ends the tokens
                                          of all operators and prints one again
  dex-hub serve                           answers on DEX_HUB_HOST:DEX_HUB_PORT (127.0.0.1:8787)
  dex-hub check                           checks settings, database and search index, and says how to fix problems
  dex-hub recount                         counts messages again if \`dex-hub check\` says that a count is wrong
  dex-hub reindex                         indexes what differs in OpenSearch again if \`dex-hub check\` says so
  dex-hub member export NAME --tenant T --to FOLDER
                                          writes all data of one person as JSON lines

Tenants, members, tokens, grants and the audit log: \`dex hub admin\`, from any machine with dex.

Settings are in the environment: DEX_HUB_DATABASE_URL, DEX_HUB_INDEX_URL, DEX_HUB_ADMIN_URL, DEX_HUB_OWNER_URL, DEX_HUB_KEYS_URL,
DEX_HUB_MASTER_KEY_FILE, DEX_HUB_DATA, DEX_HUB_HOST, DEX_HUB_PORT, DEX_HUB_METRICS_PORT,
DEX_HUB_DRAIN_SECONDS, DEX_HUB_PUSHES_PER_MINUTE, DEX_HUB_READS_PER_MINUTE, DEX_HUB_AT_ONCE,
DEX_HUB_PUSHED_MB_PER_MINUTE, DEX_HUB_CHUNK_SECONDS, DEX_HUB_UNKNOWN_TOKENS_PER_MINUTE,
DEX_HUB_LOGINS_PER_MINUTE, DEX_HUB_LOGINS_AT_ONCE, DEX_HUB_PREPARED; for an identity provider DEX_HUB_URL, DEX_HUB_OIDC_ISSUER, DEX_HUB_OIDC_CLIENT_ID,
DEX_HUB_OIDC_CLIENT_SECRET_FILE; for OpenSearch DEX_HUB_SEARCH_URL, DEX_HUB_SEARCH_PREFIX, DEX_HUB_SEARCH_SHARDS, DEX_HUB_SEARCH_USER,
DEX_HUB_SEARCH_PASSWORD_FILE, DEX_HUB_SEARCH_CA_FILE, DEX_HUB_SEARCH_CERTIFICATE_FILE, DEX_HUB_SEARCH_KEY_FILE. See docs/hub.md and docs/hub-operations.md.
`

const COMMANDS: Commands = {
  migrate: async () => {
    const { from, to } = await migrate({
      owner: ownerFrom(process.env),
      ...(process.env.DEX_HUB_APP_PASSWORD &&
        process.env.DEX_HUB_INDEX_PASSWORD && {
          passwords: {
            app: process.env.DEX_HUB_APP_PASSWORD,
            index: process.env.DEX_HUB_INDEX_PASSWORD,
            keys: process.env.DEX_HUB_KEYS_PASSWORD || undefined,
            admin: process.env.DEX_HUB_ADMIN_PASSWORD || undefined,
          },
        }),
    })
    say(
      from === to
        ? `The tables already have version ${to}.`
        : `Updated the tables from version ${from} to version ${to}.`,
    )
  },
  init: async ([name = "operator"], flags) => {
    const outcome = await asOwner(ownerFrom(process.env), (query) =>
      firstOperator(query, name, flags["locked-out"] === true),
    )
    if ("operators" in outcome)
      throw new Error(
        `${outcome.operators.join(" and ")} can log in already, and can add others with \`dex hub admin operator add\`. If nobody has these tokens any more: dex-hub init --locked-out`,
      )
    say(
      `${outcome.code}\n\nIt works once, for 24 hours: run \`dex hub admin login ${process.env.DEX_HUB_URL || "ADDRESS"}\` and paste it.`,
    )
  },
  serve,
  ...checkCommands,
  ...peopleCommands,
  ...movedCommands,
}

async function serve(): Promise<void> {
  const outdated = outdatedSettings(process.env)
  // Neither this process nor one that it starts may have it: whoever gets into them could read and change every table.
  const hadOwner = process.env.DEX_HUB_OWNER_URL !== undefined
  delete process.env.DEX_HUB_OWNER_URL
  const settings = settingsFrom(process.env)
  const db = openDatabase(settings)
  // If the reader of the log is gone or its disk is full, lines are lost, but requests are still answered.
  process.stdout.on("error", () => {})
  const log = (event: Record<string, unknown>) =>
    process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...event })}\n`)
  const folder = mkdtempSync(join(tmpdir(), "dex-hub-"))
  const { data, app, index, masterKey, prepared, limits, cluster } = settings
  const search = openSearch({ app, index, masterKey, prepared, cluster, data, folder, version: VERSION, log })
  const keys = settings.keys === undefined ? undefined : createKeyRemover(settings.keys, log)
  const checker = openChecker({ longestMs: settings.chunkSeconds * 1_000, log })
  const scanJob = scanByNewerRules(db, checker, log)
  const expireJob = expireHourly(db, log, keys?.onForgotten)
  const metrics = createMetrics()
  const ready = watchReadiness(db, () => search.state().isBuilt)
  const login =
    settings.oidc && (await import("./login/open.ts")).openLogin({ settings: settings.oidc, db, masterKey, log })
  const options = { version: VERSION, log, metrics, ready, limits }
  const hasCluster = cluster !== undefined
  const parts = { db, search, checker, ...options, onForgotten: keys?.onForgotten, login, hasCluster }
  const server = await serveApp(createHubApp(parts), settings)
  const { host, metricsPort } = settings
  const metricsServer =
    metricsPort === undefined ? undefined : await serveApp(createMetricsApp(parts), { host, port: metricsPort })
  if (metricsServer) log({ level: "info", event: "metrics", host, port: metricsServer.port })
  let isStopping = false
  const stop = async (signal: string) => {
    // A second signal ends the process at once. A push that was not acknowledged is sent again.
    if (isStopping) process.exit(1)
    isStopping = true
    ready.markStopping()
    log({ level: "info", event: "stopping", signal })
    server.drain()
    await new Promise((resolve) => setTimeout(resolve, settings.drainSeconds * 1000))
    const abortedRequests = await server.close()
    if (abortedRequests > 0) log({ level: "error", event: "cut", requests: abortedRequests })
    // Indexes and tables are written in transactions, so anything that hangs here can be abandoned.
    setTimeout(() => process.exit(0), STOP_TIMEOUT_MS)
    await metricsServer?.close()
    await keys?.stop()
    await scanJob.stop()
    await expireJob.stop()
    await checker.close()
    await search.close()
    await db.close()
    rmSync(folder, { recursive: true, force: true })
    log({ level: "info", event: "stopped" })
    process.exit(0)
  }
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => void stop(signal))
  log({ level: "info", event: "listening", host, port: server.port })
  if (hadOwner) log({ level: "error", event: "settings", why: OWNER_NOTE })
  for (const why of outdated) log({ level: "error", event: "settings", why })
  const why = await ready.checkDatabase()
  if (why === undefined) expireJob.runSoon()
  else log({ level: "error", event: "not_ready", why })
}

async function main(args: string[]): Promise<void> {
  const text = { type: "string" as const }
  const options = {
    tenant: text,
    to: text,
    "locked-out": { type: "boolean" as const },
    help: { type: "boolean" as const },
  }
  const { positionals, values } = parseArgs({ args, options, allowPositionals: true, strict: false }) as {
    positionals: string[]
    values: Flags & { help?: boolean }
  }
  const name = [positionals.slice(0, 2).join(" "), positionals[0] ?? ""].find((one) => COMMANDS[one])
  if (values.help || name === undefined) return say(HELP)
  await COMMANDS[name]!(positionals.slice(name.split(" ").length), values)
}

main(process.argv.slice(2)).catch((error: unknown) => {
  const message = databaseUnavailable(error)
    ? `PostgreSQL does not answer (${codeOf(error) || "no reason given"}). Check that it is running, and that DEX_HUB_OWNER_URL and the other addresses are right. \`dex-hub check\` shows more.`
    : error instanceof Error
      ? error.message
      : String(error)
  process.stderr.write(`${message}\n`)
  process.exitCode = error instanceof SettingsProblem ? 2 : 1
})
