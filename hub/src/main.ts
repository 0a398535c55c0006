import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { codeOf } from "../../src/core/error.ts"
import hub from "../package.json" with { type: "json" }
import { checkCommands } from "./commands/check.ts"
import { type Commands, say } from "./commands/commands.ts"
import { groupCommands } from "./commands/groups.ts"
import { keepingCommands } from "./commands/keeping.ts"
import { peopleCommands } from "./commands/people.ts"
import { projectCommands } from "./commands/projects.ts"
import { createHubApp } from "./http/app.ts"
import { createMetricsApp } from "./http/metrics.ts"
import { serveApp } from "./http/serve.ts"
import { createKeyRemover } from "./jobs/forget-keys.ts"
import { scanByNewerRules } from "./jobs/scan-again.ts"
import { createMetrics } from "./metrics.ts"
import { openChecker } from "./push/checker.ts"
import { watchReadiness } from "./ready.ts"
import { openSearch } from "./search/pool.ts"
import { keysFrom, outdatedSettings, ownerFrom, SettingsProblem, settingsFrom } from "./settings.ts"
import { databaseUnavailable, openDatabase } from "./store/connection.ts"
import { rewriteForgottenKeys } from "./store/forgotten-keys.ts"
import { migrate } from "./store/migrate.ts"

const VERSION = hub.version
/** How long a stop waits for jobs and the index after the last request has ended, in milliseconds. */
const STOP_TIMEOUT_MS = 10_000

const HELP = `dex-hub: a team's memory on PostgreSQL

  dex-hub migrate                         makes or updates the tables
  dex-hub serve                           answers on DEX_HUB_HOST:DEX_HUB_PORT (127.0.0.1:8787)
  dex-hub check                           checks settings, database and search index, and says how to fix problems
  dex-hub recount                         counts messages again if \`dex-hub check\` says that a count is wrong
  dex-hub reindex                         indexes what differs in OpenSearch again if \`dex-hub check\` says so
  dex-hub forget-keys                     removes the keys of deleted conversations from PostgreSQL's files now
  dex-hub tenant add NAME                 adds a company or team
  dex-hub tenant quota NAME SIZE|none     sets how much it may store, uncompressed: 50GB
  dex-hub tenant search NAME opensearch|files
                                          sets where its words are indexed: in OpenSearch, or in the files of each hub
  dex-hub tenant search NAME disk-gone NODE
                                          says that a node's disk was destroyed: receipts no longer wait for it
  dex-hub member add NAME --tenant T [--role member|auditor|admin|service] [--email E]
                                          adds a person, and prints their token, which is shown only once
  dex-hub member quota NAME SIZE|none --tenant T
                                          sets how much one person may store
  dex-hub member disable NAME --tenant T  ends their access at once; what they shared stays
  dex-hub member export NAME --tenant T --to FOLDER
                                          writes all data of one person as JSON lines
  dex-hub invite NAME --tenant T          prints a code that can be exchanged for one token within 7 days
  dex-hub token add MEMBER --tenant T [--scopes push,read] [--days N]
  dex-hub token add NAME --tenant T --service --project KEY
                                          for CI: reads one project, and pushes nothing
  dex-hub token list --tenant T           prints tokens without their secrets, one JSON object a line
  dex-hub token revoke ID --tenant T
  dex-hub grant MEMBER KEY --tenant T [--level read|write|own|none]
                                          lets a member read, or push to, a project; owners do that themselves
                                          with \`dex hub grant\`. --new allows one that nobody has shared yet
  dex-hub project owner KEY MEMBER --tenant T
                                          makes a member the owner of a project, in place of those who own it
  dex-hub tenant rule NAME PATTERN        grants projects below a folder (github.com/acme/*) to members who share
                                          them; \`tenant rule NAME PATTERN off\` ends it
  dex-hub tenant rules NAME               prints these rules, one JSON object a line
  dex-hub tenant oidc NAME --domain D | --group G | --everyone [--issuer URL]
                                          lets people of an identity provider log in: those with a verified e-mail
                                          address of a domain, of a group, or all; \`tenant oidc NAME off\` ends it
  dex-hub group grant GROUP KEY --tenant T [--level read|write|own]
                                          gives a project to those who log in with this group; \`group revoke\` undoes it
  dex-hub group role GROUP auditor|admin|member --tenant T
                                          gives a role to those who log in with this group; \`member\` undoes it
  dex-hub group list --tenant T           prints the access and roles of groups, one JSON object a line
  dex-hub project keep KEY DAYS|forever --tenant T
                                          sets how long a project keeps a conversation after its end
  dex-hub expire                          deletes what projects no longer keep, and the remains of pushes that never
                                          finished; run it every day
  dex-hub audit --tenant T [--limit N]    prints who did what, one JSON object a line, newest last

Settings are in the environment: DEX_HUB_DATABASE_URL, DEX_HUB_INDEX_URL, DEX_HUB_OWNER_URL, DEX_HUB_KEYS_URL,
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
            ...(process.env.DEX_HUB_KEYS_PASSWORD && { keys: process.env.DEX_HUB_KEYS_PASSWORD }),
          },
        }),
    })
    say(
      from === to
        ? `The tables already have version ${to}.`
        : `Updated the tables from version ${from} to version ${to}.`,
    )
  },
  serve,
  "forget-keys": async () => {
    const { keys = ownerFrom(process.env) } = keysFrom(process.env)
    const result = await rewriteForgottenKeys(keys)
    if (result.state === "busy")
      throw new Error(
        "The keys are still being read (by a dump or a long search). Run `dex-hub forget-keys` again later.",
      )
    say(
      result.state === "done"
        ? `The keys of what was deleted (receipts: ${result.receipts}) are gone from PostgreSQL's table files. docs/hub-design.md says how long its write-ahead log keeps them.`
        : "Nothing has been deleted since the last time.",
    )
  },
  ...checkCommands,
  ...groupCommands,
  ...keepingCommands,
  ...peopleCommands,
  ...projectCommands,
}

async function serve(): Promise<void> {
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
  const metrics = createMetrics()
  const ready = watchReadiness(db, () => search.state().isBuilt)
  const login =
    settings.oidc && (await import("./login/open.ts")).openLogin({ settings: settings.oidc, db, masterKey, log })
  const options = { version: VERSION, log, metrics, ready, limits }
  const parts = { db, search, checker, ...options, onForgotten: keys?.onForgotten, login }
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
    await checker.close()
    await search.close()
    await db.close()
    rmSync(folder, { recursive: true, force: true })
    log({ level: "info", event: "stopped" })
    process.exit(0)
  }
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => void stop(signal))
  log({ level: "info", event: "listening", host, port: server.port })
  for (const why of outdatedSettings(process.env)) log({ level: "error", event: "settings", why })
  const why = await ready.checkDatabase()
  if (why !== undefined) log({ level: "error", event: "not_ready", why })
}

async function main(args: string[]): Promise<void> {
  const text = { type: "string" as const }
  const options = {
    tenant: text,
    role: text,
    email: text,
    scopes: text,
    days: text,
    level: text,
    limit: text,
    project: text,
    to: text,
    issuer: text,
    domain: text,
    group: text,
    everyone: { type: "boolean" as const },
    new: { type: "boolean" as const },
    service: { type: "boolean" as const },
    help: { type: "boolean" as const },
  }
  const { positionals, values } = parseArgs({ args, options, allowPositionals: true })
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
