// The long campaigns: the same tests as in CI, with more of everything. Each prints what it did; a failure prints the seed that
// replays it.
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

/** The first variable of a campaign is its count; the one that ends in SEED is its seed. */
const CAMPAIGNS = {
  kill: { file: "test/torture/kill.test.ts", env: { DEX_KILLS: "1000" } },
  wal: { file: "test/torture/wal.test.ts", env: { DEX_CUTS: "1000" } },
  model: {
    file: "test/torture/model.test.ts",
    env: { DEX_HISTORIES: "50000", DEX_SEED: String(Date.now() % 2 ** 31) },
  },
  fuzz: { file: "test/torture/fuzz.test.ts", env: { DEX_FUZZ: "10000" } },
  commits: { file: "test/torture/many-commits.test.ts", env: { DEX_COMMITS: "1000000" } },
  processes: { file: "test/torture/processes.test.ts", env: { DEX_ROUNDS: "50" } },
  queries: {
    file: "test/search/search.test.ts",
    env: { DEX_QUERIES: "100000", DEX_SEED: String(Date.now() % 2 ** 31) },
  },
  disk: { file: "test/torture/disk.test.ts", env: {} },
  mcp: {
    file: "test/mcp/lifecycle.timing.test.ts",
    env: { DEX_MCP_CLOSES: "200" },
  },
  server: {
    file: "test/torture/server-memory.test.ts",
    env: { DEX_MCP_CALLS: "20000", DEX_MCP_CONNECTS: "500" },
  },
  stdout: { file: "test/torture/stdout.test.ts", env: { DEX_MCP_NOISY_CALLS: "100000" } },
  protocol: {
    file: "test/torture/protocol.test.ts",
    env: { DEX_MCP_FUZZ: "50000", DEX_MCP_SEED: String(Date.now() % 2 ** 31) },
  },
  caps: { file: "test/answers/ask.test.ts", env: { DEX_LOOPS: "100" } },
  outgoing: { file: "test/hub/outgoing.test.ts", env: { DEX_OUTGOING: "20000" } },
  push: { file: "test/torture/push.test.ts", env: { DEX_PASSAGES: "72" } },
  webhooks: {
    file: "test/torture/webhooks.test.ts",
    env: { DEX_EVENTS: "5000", DEX_WEBHOOK_KILLS: "100", DEX_SEED: "7" },
  },
  rot: {
    file: "test/torture/rot.test.ts",
    env: {
      DEX_FLIPS: "2000",
      DEX_PAGE_FLIPS: "500",
      DEX_INDEX_FLIPS: "500",
      DEX_CLI_FLIPS: "20",
      DEX_ROT_GENUINE: "1",
      DEX_SEED: String(Date.now() % 2 ** 31),
    },
  },
  pages: { file: "test/view/browser.test.ts", env: { DEX_HOSTILE_MESSAGES: "1000" } },
  hub: { file: "hub/test/push.test.ts", env: { DEX_HUB_KILLS: "200", DEX_HUB_ROUNDS: "60" } },
  "hub-search": {
    file: "hub/test/cluster-faults.test.ts",
    env: { DEX_FAULTS: "100", DEX_SEED: String(Date.now() % 2 ** 31), DEX_PAUSE_SECONDS: "0", DEX_TEST_CLUSTER: "3" },
  },
  hooks: { file: "test/torture/hooks.test.ts", env: { DEX_HOOKS: "100" } },
  load: { file: "test/torture/load.test.ts", env: { DEX_LOAD_SECONDS: "300" } },
  local: { file: "test/embed-local/model.timing.test.ts", env: { DEX_LOCAL_MODEL: "build" } },
}

const USAGE = `Run the long test campaigns: all of them, or those you name.

  npm run torture
  npm run torture -- kill wal
  npm run torture -- model --count 5000 --seed 7

Options
  --count N  How much to do in each campaign you name: its first variable below
  --seed N   Where its random choices start: its variable that ends in SEED

Variables that are set in the environment win over the defaults, and options win over both.

Campaigns
${Object.entries(CAMPAIGNS)
  .map(([name, { env }]) => `  ${name.padEnd(10)} ${Object.entries(env).map(said).join(" ")}`.trimEnd())
  .join("\n")}
`

function said([name, value]) {
  return name.endsWith("SEED") ? name : `${name}=${value}`
}

/**
 * The campaigns that these arguments select, each with its variables, or what is wrong with the arguments.
 * @param {string[]} argv
 * @param {Record<string, string | undefined>} env
 * @returns {{ help: true } | { wrong: string } | { runs: { name: string, file: string, env: Record<string, string> }[] }}
 */
export function planOf(argv, env) {
  const { values, positionals, tokens } = parseArgs({
    args: argv,
    options: { count: { type: "string" }, seed: { type: "string" }, help: { type: "boolean", short: "h" } },
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  if (values.help) return { help: true }
  const option = tokens.find((token) => token.kind === "option" && !["count", "seed"].includes(token.name))
  if (option) return { wrong: `There is no option ${option.rawName}.` }
  const unknown = positionals.find((name) => !Object.hasOwn(CAMPAIGNS, name))
  if (unknown !== undefined)
    return { wrong: `There is no campaign "${unknown}". There are: ${Object.keys(CAMPAIGNS).join(", ")}.` }
  for (const name of ["count", "seed"]) {
    const value = values[name]
    if (value === undefined) continue
    if (!/^[1-9]\d*$/.test(String(value))) return { wrong: `--${name} takes a whole number from 1 on.` }
    if (positionals.length === 0)
      return { wrong: `--${name} goes with the campaigns that it is for: npm run torture -- model --${name} ${value}` }
    const without = positionals.find((campaign) => variableOf(campaign, name) === undefined)
    if (without !== undefined) return { wrong: `The campaign ${without} has no ${name}.` }
  }
  const runs = Object.entries(CAMPAIGNS)
    .filter(([name]) => positionals.length === 0 || positionals.includes(name))
    .map(([name, campaign]) => {
      const chosen = { ...campaign.env }
      for (const variable of Object.keys(chosen)) chosen[variable] = env[variable] ?? chosen[variable]
      if (values.count !== undefined) chosen[variableOf(name, "count")] = values.count
      if (values.seed !== undefined) chosen[variableOf(name, "seed")] = values.seed
      return { name, file: campaign.file, env: chosen }
    })
  return { runs }
}

function variableOf(campaign, what) {
  const names = Object.keys(CAMPAIGNS[campaign].env)
  return what === "seed" ? names.find((name) => name.endsWith("SEED")) : names[0]
}

function main() {
  const plan = planOf(process.argv.slice(2), process.env)
  if ("help" in plan) return console.log(USAGE)
  if ("wrong" in plan) {
    console.error(`${plan.wrong} See npm run torture -- --help`)
    process.exit(2)
  }
  let failed = 0
  for (const { name, file, env } of plan.runs) {
    const started = Date.now()
    console.log(
      `${name}: ${Object.entries(env)
        .map((pair) => pair.join("="))
        .join(" ")}`,
    )
    const { status } = spawnSync(process.execPath, ["scripts/run.mjs", "vitest", "run", file], {
      stdio: "inherit",
      env: { ...process.env, ...env },
    })
    console.log(`${name}: ${status === 0 ? "passed" : "FAILED"} in ${Math.round((Date.now() - started) / 1000)} s`)
    if (status !== 0) failed++
  }
  process.exit(failed > 0 ? 1 : 0)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main()
