import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, expect, onTestFinished, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { loadsOf, writePackage } from "../support/local-model.ts"
import { isAlive } from "../support/processes.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"

// No message contains any of the words of PARAPHRASE; the model knows their meaning.
const SYNONYMS = { people: "customers", thrown: "signed", off: "out", unexpectedly: "random" }
const PARAPHRASE = "people thrown off unexpectedly"
const SET = ["config", "set", "embed.provider", "local"]

/** A history of 25 conversations that nothing changes, and the model as npm packs it. */
const HOME = sharedTempDir()
const LOADS = sharedTempDir()
const PACKAGE = sharedTempDir()
let env: { DEX_LOCAL_MODEL_PACKAGE: string }

beforeAll(async () => {
  await readHistory(HOME)
  env = packed(PACKAGE)
})

async function readHistory(home: string): Promise<void> {
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
  await syncHome(home)
}

/** The package in a file in this folder; `more` changes it before it is packed. */
function packed(folder: string, more: (folder: string) => void = () => {}): { DEX_LOCAL_MODEL_PACKAGE: string } {
  writePackage(folder, LOADS, { synonyms: SYNONYMS })
  more(folder)
  const file = execFileSync("npm", ["pack", "--silent"], {
    cwd: folder,
    encoding: "utf8",
    shell: process.platform === "win32",
  })
  return { DEX_LOCAL_MODEL_PACKAGE: join(folder, file.trim()) }
}

function put(folder: string, name: string, text: string): void {
  writeFileSync(join(folder, name), text)
}

function manifestWith(folder: string, more: object): string {
  return JSON.stringify({ ...JSON.parse(readFileSync(join(folder, "package.json"), "utf8")), ...more })
}

/** Ends the processes that have loaded the model; nothing else does. */
function endHelpers(): void {
  for (const pid of readFileSync(join(LOADS, "loads"), "utf8").trim().split("\n").map(Number))
    if (isAlive(pid)) process.kill(pid, "SIGKILL")
}

test("says how large the local model is, and changes nothing without confirmation", async () => {
  const run = await warmDex(HOME, SET, env)
  expect(run.code).toBe(2)
  expect(run.stderr).toMatch(/37 MB on disk; the download from npm is 20 MB/)
  expect(run.stderr).toMatch(/reads your 50 messages once, in the background: about 1 minute/)
  expect(run.stderr).toMatch(/without a terminal. Add --yes/)
  expect(existsSync(join(HOME, ".dex", "embed-local"))).toBe(false)
  const unconfirmed = await warmDex(HOME, [...SET, "--json"], env)
  expect(unconfirmed.code).toBe(1)
  expect(JSON.parse(unconfirmed.stdout)).toMatchObject({
    asked: true,
    local_model: { installed: false, messages: 50, minutes: 1 },
  })
  expect((await warmDex(HOME, ["config", "get", "embed.provider"])).stdout).toBe("none\n")
})

test("after confirmation it installs the model and embeds the history, and a search finds other words with the same meaning", async () => {
  const home = tempDir()
  await readHistory(home)
  onTestFinished(endHelpers)
  const run = await warmDex(home, [...SET, "--yes"], env)
  expect(run).toMatchObject({ code: 0, stdout: "embed.provider is local.\n" })
  expect(run.stderr).toMatch(/The local model is installed/)
  expect(statSync(join(home, ".dex", "embed-local")).mode & 0o077).toBe(0)
  const find = async () =>
    JSON.parse((await warmDex(home, ["search", PARAPHRASE, "--json"], { DEX_EMBED_TIMEOUT_MS: "5000" })).stdout) as {
      mode: string
      degraded?: string[]
      results: { id: string }[]
    }
  await expect.poll(async () => (await find()).degraded ?? []).toEqual([])
  expect(await find()).toMatchObject({ mode: "hybrid" })
  expect((await find()).results[0]?.id).toBe("claude_code:11111111-1111-4111-8111-111111111111")
  const doctor = JSON.parse((await warmDex(home, ["doctor", "--json"])).stdout) as {
    checks: { name: string; message: string }[]
  }
  expect(doctor.checks.find(({ name }) => name === "meaning")!.message).toMatch(
    /local model 1\.0\.0 .*: (\d+) of \1 messages are embedded; it is loaded in process \d+/,
  )
})

test("the package's file can be named on the command line, and only a file is accepted", async () => {
  const home = tempDir()
  const named = await warmDex(home, [...SET, env.DEX_LOCAL_MODEL_PACKAGE, "--yes"])
  expect(named).toMatchObject({ code: 0, stdout: "embed.provider is local.\n" })
  expect(named.stderr).toMatch(/The local model is installed/)
  // A name that npm would download, a folder, and a file that is not there.
  for (const other of ["dexctx-embed-local", PACKAGE, join(PACKAGE, "none.tgz"), "https://example.com/x.tgz"]) {
    const refused = await warmDex(tempDir(), [...SET, other, "--yes"])
    expect(refused.code, other).toBe(2)
    expect(refused.stderr).toMatch(/There is no file .*Nothing was changed/)
  }
})

/** Code that records in a file that it ran. */
const noting = (file: string) =>
  `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(file)}, "run")\n`

test.each<[string, (folder: string, mark: string) => void, RegExp]>([
  [
    "whose code is another",
    (folder, mark) => put(folder, "dist/index.js", noting(mark)),
    /SHA-512|is missing|other file/,
  ],
  ["with another file", (folder, mark) => put(folder, "dist/more.js", noting(mark)), /an additional file/],
  ["with another model", (folder) => put(folder, "dist/model.onnx", "other weights"), /SHA-512/],
  ["without a file", (folder) => rmSync(join(folder, "dist"), { recursive: true }), /not the local model/],
  ["with another manifest", (folder) => put(folder, "package.json", manifestWith(folder, { x: 1 })), /published/],
])("a package %s is not used, none of its code runs, and nothing is left of it", async (_, change, why) => {
  const mark = join(tempDir(), "mark")
  const other = packed(tempDir(), (folder) => change(folder, mark))
  const run = await warmDex(HOME, [...SET, "--yes"], other)
  expect(run.code).toBe(2)
  expect(run.stderr).toMatch(/is not the one that was published|not the local model/)
  expect(run.stderr).toMatch(why)
  expect(existsSync(mark)).toBe(false)
  expect(readdirSync(join(HOME, ".dex")).filter((name) => name.startsWith("embed-local"))).toEqual([])
  expect((await warmDex(HOME, ["config", "get", "embed.provider"])).stdout).toBe("none\n")
})

test("an unregistered substitute package is refused: the environment variable does not bypass the check", async () => {
  const run = await warmDex(HOME, [...SET, "--yes"], { ...env, STAND_IN_FILES: "[]" })
  expect(run.code).toBe(2)
  expect(run.stderr).toMatch(/is not the one that was published/)
})

test("other files that npm put next to the package do not get into dex's folder", async () => {
  const home = tempDir()
  await readHistory(home)
  onTestFinished(endHelpers)
  mkdirSync(join(home, ".dex/embed-local/node_modules/own"), { recursive: true })
  writeFileSync(join(home, ".dex/embed-local/package.json"), '{ "dependencies": { "own": "1.0.0" } }')
  expect(await warmDex(home, [...SET, "--yes"], env)).toMatchObject({ code: 0 })
  const folder = join(home, ".dex/embed-local")
  expect(readdirSync(join(folder, "node_modules")).sort()).toEqual(["dexctx-embed-local", "own"])
  expect(JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))).toEqual({
    private: true,
    dependencies: { own: "1.0.0", "dexctx-embed-local": "1.0.0" },
  })
})

test.skipIf(process.platform === "win32")("without npm it says what is missing", async () => {
  const bin = tempDir()
  symlinkSync(process.execPath, join(bin, "node"))
  const run = await warmDex(HOME, [...SET, "--yes"], { ...env, PATH: bin })
  expect(run.code).toBe(2)
  expect(run.stderr).toMatch(
    /npm, which is needed to install the local model, was not found.*Install Node\.js with npm/s,
  )
  expect(existsSync(join(HOME, ".dex", "embed-local"))).toBe(false)
})

test("without a network it says so, in its own words", async () => {
  const run = await warmDex(HOME, [...SET, "--yes"], {
    npm_config_registry: "http://127.0.0.1:9/",
    npm_config_fetch_retries: "0",
    npm_config_cache: tempDir(),
  })
  expect(run.code).toBe(2)
  expect(run.stderr).toMatch(/npm's registry could not be reached.*Nothing was changed/s)
  expect(existsSync(join(HOME, ".dex", "embed-local"))).toBe(false)
})

test("config and doctor name a chosen model that is missing, and search continues by words", async () => {
  const home = tempDir()
  const dexDir = join(home, ".dex")
  await readHistory(home)
  writeFileSync(join(dexDir, "config.json"), '{ "embed.provider": "local" }\n', { mode: 0o600 })
  expect((await warmDex(home, ["config"])).stderr).toMatch(
    /the model is not installed: dex config set embed\.provider local/,
  )
  const doctor = JSON.parse((await warmDex(home, ["doctor", "--json"])).stdout) as {
    checks: { name: string; mend?: string }[]
  }
  expect(doctor.checks.find(({ name }) => name === "meaning")?.mend).toBe("dex config set embed.provider local")
  const found = JSON.parse((await warmDex(home, ["search", "signed out", "--json"])).stdout)
  expect(found).toMatchObject({ mode: "lexical", results: [{}] })
  expect(loadsOf(dexDir)).toEqual([])
})
