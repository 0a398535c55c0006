// The long campaigns: the same tests as in CI, with more of everything. `npm run torture`, or one of them by name:
// `npm run torture -- kill`. Each prints what it did; a failure prints the seed that replays it.
import { spawnSync } from "node:child_process"

const CAMPAIGNS = {
  kill: { file: "test/torture/kill.test.ts", env: { DEX_KILLS: "1000" } },
  wal: { file: "test/torture/wal.test.ts", env: { DEX_CUTS: "1000" } },
  model: { file: "test/ingest/model.test.ts", env: { DEX_HISTORIES: "50000", DEX_SEED: String(Date.now() % 2 ** 31) } },
  fuzz: { file: "test/torture/fuzz.test.ts", env: { DEX_FUZZ: "10000" } },
  processes: { file: "test/torture/processes.test.ts", env: { DEX_ROUNDS: "50" } },
  queries: {
    file: "test/search/search.test.ts",
    env: { DEX_QUERIES: "100000", DEX_SEED: String(Date.now() % 2 ** 31) },
  },
  disk: { file: "test/torture/disk.test.ts", env: {} },
  mcp: {
    file: "test/mcp/lifecycle.test.ts",
    env: { DEX_MCP_CLOSES: "200", DEX_MCP_CONNECTS: "500", DEX_MCP_CALLS: "100000" },
  },
  protocol: {
    file: "test/mcp/fuzz.test.ts",
    env: { DEX_MCP_FUZZ: "50000", DEX_MCP_SEED: String(Date.now() % 2 ** 31) },
  },
  caps: { file: "test/agent/ask.test.ts", env: { DEX_LOOPS: "100" } },
  push: { file: "test/suggest/push.test.ts", env: { DEX_PASSAGES: "72" } },
  webhooks: { file: "test/torture/webhooks.test.ts", env: { DEX_EVENTS: "5000", DEX_WEBHOOK_KILLS: "100" } },
  load: { file: "test/torture/load.test.ts", env: { DEX_LOAD_SECONDS: "300" } },
}

const names = process.argv.slice(2)
const unknown = names.filter((name) => !(name in CAMPAIGNS))
if (unknown.length > 0) {
  console.error(`There is no campaign ${unknown.join(", ")}. There are: ${Object.keys(CAMPAIGNS).join(", ")}`)
  process.exit(2)
}
let failed = 0
for (const [name, { file, env }] of Object.entries(CAMPAIGNS)) {
  if (names.length > 0 && !names.includes(name)) continue
  const started = Date.now()
  const { status } = spawnSync(process.execPath, ["scripts/run.mjs", "vitest", "run", file], {
    stdio: "inherit",
    env: { ...process.env, ...env },
  })
  console.log(`${name}: ${status === 0 ? "passed" : "FAILED"} in ${Math.round((Date.now() - started) / 1000)} s`)
  if (status !== 0) failed++
}
process.exit(failed > 0 ? 1 : 0)
