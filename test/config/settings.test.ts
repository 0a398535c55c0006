import { execFileSync, spawnSync } from "node:child_process"
import { chmodSync, lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { type LoadOptions, loadSettings } from "../../src/config/load.ts"
import { keyPlace, readKey } from "../../src/config/secret.ts"
import { embedSettings, llmSettings, rerankSettings } from "../../src/config/servers.ts"
import { readTextValue, SETTING_NAMES, SETTINGS, variableOf } from "../../src/config/settings.ts"
import { writeKey, writeSetting } from "../../src/config/write.ts"
import { dex } from "../support/dex.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

type Files = { config?: unknown; project?: unknown; env?: LoadOptions["env"]; flags?: LoadOptions["flags"] }

function load({ config, project, env = {}, flags = {} }: Files) {
  const dir = tempDir()
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value))
  if (config !== undefined) writeFileSync(join(dir, "config.json"), text(config), { mode: 0o600 })
  if (project !== undefined) writeFileSync(join(dir, ".dex.json"), text(project), { mode: 0o600 })
  return loadSettings({ file: join(dir, "config.json"), env, project: dir, flags })
}

describe("where a value comes from", () => {
  const config = { "embed.provider": "ollama", "embed.model": "from the file", "embed.timeout_ms": 1 }

  test("defaults apply if nobody chose", () => {
    const { settings, origins, problems } = load({})
    expect(problems).toEqual([])
    for (const name of SETTING_NAMES) {
      expect(settings[name]).toBe(SETTINGS[name].default)
      expect(origins[name]).toBe("default")
    }
    expect(settings).toMatchObject({ "embed.provider": "none", "embed.timeout_ms": 150, "search.rerank": "off" })
  })

  test("a flag beats the environment, the environment the file, the file the default", () => {
    const all = { config: { "embed.model": "file" }, env: { DEX_EMBED_MODEL: "env" }, flags: { "embed.model": "flag" } }
    expect(load(all)).toMatchObject({ settings: { "embed.model": "flag" }, origins: { "embed.model": "flag" } })
    expect(load({ ...all, flags: {} })).toMatchObject({
      settings: { "embed.model": "env" },
      origins: { "embed.model": "environment" },
    })
    expect(load({ config: all.config })).toMatchObject({
      settings: { "embed.model": "file" },
      origins: { "embed.model": "config" },
    })
  })

  test("a wrong value is ignored and reported, and the next weaker one applies", () => {
    const { settings, problems } = load({ config, env: { DEX_EMBED_PROVIDER: "pinecone" } })
    expect(settings).toMatchObject({ "embed.provider": "ollama", "embed.timeout_ms": 150 })
    expect(problems).toEqual([
      expect.stringMatching(/config\.json: embed\.timeout_ms must be at least 10/),
      expect.stringMatching(/DEX_EMBED_PROVIDER: embed\.provider must be one of: none, local, openai, ollama/),
    ])
  })

  test.each(["{", "[]", "null", '"text"'])("a file that contains %s is reported and ignored", (text) => {
    const { settings, problems } = load({ config: text })
    expect(settings["embed.provider"]).toBe("none")
    expect(problems).toEqual([expect.stringMatching(/not a JSON object/)])
  })

  test("unknown names are reported, in the file and in the environment", () => {
    const { problems } = load({ config: { "embed.modle": "x" }, env: { DEX_EMBED_MODLE: "x", DEX_EMBED_API_KEY: "k" } })
    expect(problems).toEqual([expect.stringMatching(/"embed\.modle"/), expect.stringMatching(/"DEX_EMBED_MODLE"/)])
  })

  test("a file that anybody can write is not read", () => {
    const dir = tempDir()
    const file = join(dir, "config.json")
    writeFileSync(file, '{"embed.provider":"openai"}')
    chmodSync(file, 0o666)
    const { settings, problems } = loadSettings({ file, env: {} })
    expect(settings["embed.provider"]).toBe("none")
    expect(problems[0]).toMatch(/chmod 600/)
  })
})

describe("a project's own file", () => {
  test.skipIf(process.platform === "win32")("that is a pipe does not block", () => {
    const dir = tempDir()
    execFileSync("mkfifo", [join(dir, ".dex.json")])
    // In a separate process: one that waits in the system for the pipe cannot be stopped from within.
    const program = `const { loadSettings } = await import(process.argv[1])
      console.log(loadSettings({ file: "/nowhere", env: {}, project: process.argv[2] }).problems[0])`
    const load = join(import.meta.dirname, "../../src/config/load.ts")
    const args = ["--input-type=module", "-e", program, load, dir]
    const run = spawnSync(process.execPath, args, { timeout: 100_000, encoding: "utf8" })
    expect(run.stdout).toMatch(/\.dex\.json: This file is not a regular file/)
  })

  test("may turn things off", () => {
    const { settings, origins, problems } = load({
      config: { "embed.provider": "ollama", "search.rerank": "http://127.0.0.1:8080" },
      project: { "embed.provider": "none", "search.rerank": "off" },
    })
    expect(settings).toMatchObject({ "embed.provider": "none", "search.rerank": "off" })
    expect(origins).toMatchObject({ "embed.provider": "project", "search.rerank": "project" })
    expect(problems).toEqual([])
  })

  test("may not turn anything on, or make dex contact a server", () => {
    const wanted: Record<string, unknown> = {
      "embed.provider": "openai",
      "embed.url": "https://evil.example/v1",
      "embed.model": "x",
      "embed.dims": 64,
      "embed.api_key_from": "AWS_SECRET_ACCESS_KEY,/etc/passwd",
      "embed.timeout_ms": 60000,
      "search.rerank": "https://evil.example/v1",
      "rerank.timeout_ms": 60000,
      "rerank.model": "x",
      "rerank.api_key_from": "AWS_SECRET_ACCESS_KEY,/etc/passwd",
      "llm.provider": "https://evil.example/v1",
      "llm.model": "x",
      "llm.temperature": 2,
      "llm.max_tokens": 1000000,
      "llm.api_key_from": "AWS_SECRET_ACCESS_KEY,/etc/passwd",
    }
    const { settings, origins, problems } = load({ project: wanted })
    expect(settings).toEqual(load({}).settings)
    expect(Object.values(origins).filter((origin) => origin === "project")).toEqual([])
    expect(problems).toHaveLength(Object.keys(wanted).length)
  })

  test("may choose only the narrowest value of any setting", () => {
    for (const name of SETTING_NAMES) {
      const { narrowest } = SETTINGS[name]
      for (const value of ["none", "on", "x", true, false, 0, 99, null, "http://127.0.0.1", "A_B", "/a"]) {
        const { settings } = load({ project: { [name]: value } })
        if (value !== narrowest) expect(settings[name]).toBe(SETTINGS[name].default)
      }
    }
  })

  test("yields to the environment, which belongs to the person", () => {
    const { settings } = load({ project: { "embed.provider": "none" }, env: { DEX_EMBED_PROVIDER: "ollama" } })
    expect(settings["embed.provider"]).toBe("ollama")
  })
})

test("every setting has a description and its own variable", () => {
  expect(SETTING_NAMES.filter((name) => !SETTINGS[name].schema.description?.endsWith("."))).toEqual([])
  expect(new Set(SETTING_NAMES.map(variableOf)).size).toBe(SETTING_NAMES.length)
})

test.each([
  ["embed.url", "ftp://x.example", /http/],
  ["embed.url", "nonsense", /address/],
  ["embed.url", "https://user:hunter2@x.example", /not contain a password/],
  ["embed.url", "https://x.example/v1?key=hunter2", /not contain a password/],
  ["embed.api_key_from", "sk-hunter2", /not the key itself/],
  ["embed.api_key_from", "MY_KEY,embed.key", /full path/],
  ["embed.dims", "hunter2", /whole number/],
  ["embed.dims", "1e3", /whole number/],
  ["search.rerank", "hunter2", /address.*or off/],
  ["llm.provider", "https://user:hunter2@x.example", /not contain a password/],
  ["llm.provider", "sk-hunter2", /address/],
  ["llm.temperature", "hunter2", /must be a number/],
  ["llm.temperature", "2.1", /at most 2/],
  ["llm.temperature", "-0.1", /at least 0/],
  ["llm.max_tokens", "0.5", /whole number/],
] as const)("%s cannot be %s, and the input is not repeated", (name, value, message) => {
  const result = readTextValue(name, value)
  expect(result).toEqual({ wrong: expect.stringMatching(message) })
  expect(JSON.stringify(result)).not.toContain("hunter2")
})

describe("writing", () => {
  test("keeps the rest of the file, and writes only what was chosen", () => {
    const file = join(tempDir(), "deep", "config.json")
    writeSetting(file, "embed.model", "a")
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), "later.setting": 1 }))
    writeSetting(file, "embed.timeout_ms", 300)
    writeSetting(file, "embed.provider", "none")
    writeSetting(file, "embed.model", undefined)
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ "later.setting": 1, "embed.timeout_ms": 300 })
  })

  test("makes the file readable only for its owner, whatever it was before", () => {
    const file = join(tempDir(), "config.json")
    writeFileSync(file, "{}", { mode: 0o644 })
    writeSetting(file, "embed.model", "a")
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  test("writes through a link and keeps it", () => {
    const dir = tempDir()
    writeFileSync(join(dir, "mine.json"), "{}", { mode: 0o600 })
    symlinkSync(join(dir, "mine.json"), join(dir, "config.json"))
    writeSetting(join(dir, "config.json"), "embed.model", "a")
    expect(lstatSync(join(dir, "config.json")).isSymbolicLink()).toBe(true)
    expect(readFileSync(join(dir, "mine.json"), "utf8")).toContain("embed.model")
  })

  test("does not overwrite a file that it cannot read", () => {
    const file = join(tempDir(), "config.json")
    writeFileSync(file, '{ "embed.model": "mine", ', { mode: 0o600 })
    expect(() => writeSetting(file, "embed.dims", 64)).toThrow(/not a JSON object\. Fix or remove it first/)
    expect(readFileSync(file, "utf8")).toBe('{ "embed.model": "mine", ')
  })
})

describe("keys", () => {
  const settingsWith = (config: object) => load({ config }).settings

  test("come from the named variable, otherwise from the file", () => {
    const home = tempDir()
    writeFileSync(join(home, "key"), "  from-the-file\n", { mode: 0o600 })
    const settings = settingsWith({ "embed.api_key_from": "MY_KEY, ~/key" })
    expect(readKey("embed", settings, { env: { MY_KEY: "from-env" }, home })).toBe("from-env")
    expect(readKey("embed", settings, { env: {}, home })).toBe("from-the-file")
    expect(keyPlace("embed", settings, { env: {}, home })).toEqual({ from: "file", place: join(home, "key") })
    expect(readKey("embed", settingsWith({}), { env: { OPENAI_API_KEY: "x" }, home })).toBeUndefined()
  })

  test.each([0o640, 0o604, 0o644])("are not taken from a file with mode %o", (mode) => {
    const home = tempDir()
    writeFileSync(join(home, "key"), "hunter2", { mode: 0o600 })
    chmodSync(join(home, "key"), mode)
    const settings = settingsWith({ "embed.api_key_from": "~/key" })
    expect(() => readKey("embed", settings, { env: {}, home })).toThrow(/Others can read.*chmod 600/)
  })

  test("that cannot be keys are refused without being repeated", () => {
    const where = { env: { DEX_EMBED_API_KEY: "hunter2\nX-Evil: 1" }, home: tempDir() }
    expect(() => readKey("embed", settingsWith({}), where)).toThrow(/^DEX_EMBED_API_KEY does not contain a key/)
  })

  test("are not read if nothing needs them", () => {
    const where = { env: {}, home: tempDir() }
    const settings = settingsWith({ "embed.api_key_from": "~/missing", "rerank.api_key_from": "~/missing" })
    expect(embedSettings(settings, where)).toEqual({ provider: "none" })
    expect(rerankSettings(settings, where)).toBeUndefined()
  })
})

describe("a model", () => {
  const where = () => ({ env: {}, home: tempDir() })

  test("is available only if the user gave a key or an address", () => {
    const set = (config: object, env = {}) => llmSettings(load({ config }).settings, { env, home: tempDir() })
    const usual = {
      type: "server",
      provider: "https://api.openai.com/v1",
      model: "gpt-4o-mini",
      temperature: 0,
      maxTokens: 4096,
    }
    expect(set({})).toBeUndefined()
    expect(set({ "llm.model": "gpt-5", "llm.temperature": 1, "llm.max_tokens": 100 })).toBeUndefined()
    expect(set({}, { OPENAI_API_KEY: "sk-of-somebody-else" })).toBeUndefined()
    expect(set({}, { DEX_LLM_API_KEY: "sk-mine" })).toEqual({ ...usual, apiKey: "sk-mine" })
    expect(set({ "llm.api_key_from": "OPENAI_API_KEY" }, { OPENAI_API_KEY: "sk-mine" })).toMatchObject({
      apiKey: "sk-mine",
    })
    const local = { "llm.provider": "http://127.0.0.1:11434/v1", "llm.model": "qwen3", "llm.temperature": 0.5 }
    expect(set(local)).toEqual({
      type: "server",
      provider: "http://127.0.0.1:11434/v1",
      model: "qwen3",
      temperature: 0.5,
      maxTokens: 4096,
    })
  })

  test("can be an agent, with its own model unless one was chosen, and only the user's own file can allow it", () => {
    const set = (config: object, env = {}) => llmSettings(load({ config, env }).settings, { env, home: tempDir() })
    const agent = { type: "agent", provider: "claude_code", maxTokens: 4096, allowed: [] }
    expect(set({ "llm.provider": "claude_code" })).toEqual(agent)
    expect(set({}, { DEX_LLM_PROVIDER: "agent" })).toEqual({ ...agent, provider: "agent" })
    const chosen = { "llm.provider": "codex", "llm.model": "gpt-5.5", "llm.allowed_agents": "codex, claude_code" }
    expect(set(chosen)).toEqual({ ...agent, provider: "codex", model: "gpt-5.5", allowed: ["codex", "claude_code"] })
    const env = { DEX_LLM_PROVIDER: "codex", DEX_LLM_ALLOWED_AGENTS: "codex" }
    expect(set({}, env)).toMatchObject({ allowed: [] })
    expect(load({ env }).problems).toEqual([expect.stringMatching(/DEX_LLM_ALLOWED_AGENTS.*only in your own settings/)])
    expect(load({ project: { "llm.provider": "codex", "llm.allowed_agents": "codex" } }).problems).toHaveLength(2)
    expect(readTextValue("llm.provider", "cursor")).toEqual({
      wrong: expect.stringMatching(/address.*or one of agent, /),
    })
    expect(readTextValue("llm.allowed_agents", "codex,cursor")).toEqual({
      wrong: expect.stringMatching(/must be among/),
    })
  })

  test("can also be chosen in the environment, where a wrong name is reported", () => {
    const env = { DEX_LLM_TEMPERATURE: "0.7", DEX_LLM_MODEL: "m", DEX_LLM_API_KEY: "k", DEX_LLM_TEMP: "1" }
    const { settings, problems } = load({ env })
    expect(settings).toMatchObject({ "llm.temperature": 0.7, "llm.model": "m" })
    expect(problems).toEqual([expect.stringMatching(/"DEX_LLM_TEMP"/)])
  })

  test("whose key file is gone or readable by others reports that, and is not used without it", () => {
    const settings = load({ config: { "llm.api_key_from": "~/missing" } }).settings
    expect(() => llmSettings(settings, where())).toThrow(/cannot be read.*dex config unset llm\.api_key_from/)
  })

  test("has its key in a file that only its owner can read, whatever was there before", () => {
    const dir = tempDir()
    const home = { dir, config: join(dir, "config.json") }
    writeFileSync(join(dir, "llm.key"), "old", { mode: 0o644 })
    const file = writeKey(home, "llm", "sk-new")
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(home.config, "utf8")).not.toContain("sk-new")
    const { settings } = loadSettings({ file: home.config, env: {} })
    expect(llmSettings(settings, where())).toMatchObject({ apiKey: "sk-new" })
    expect(() => writeKey(home, "llm", "two\nlines")).toThrow(/not a key/)
    expect(readFileSync(file, "utf8")).toBe("sk-new\n")
  })
})

describe("dex config", () => {
  test("sets, shows where a value comes from, and unsets", async () => {
    const home = tempDir()
    expect(await warmDex(home, ["config", "set", "embed.provider", "ollama"])).toMatchObject({
      code: 0,
      stdout: "embed.provider is ollama.\n",
      stderr: expect.stringMatching(/no model is chosen: dex config set embed\.model/),
    })
    await warmDex(home, ["config", "set", "embed.model", "nomic-embed-text"])
    const env = { DEX_EMBED_MODEL: "other" }
    const listed = JSON.parse((await warmDex(home, ["config", "list", "--json"], env)).stdout)
    const origin = (name: string) => listed.settings.find((one: { name: string }) => one.name === name)
    expect(origin("embed.provider")).toMatchObject({ value: "ollama", origin: "config", default: "none" })
    expect(origin("embed.model")).toMatchObject({ value: "other", origin: "environment", variable: "DEX_EMBED_MODEL" })
    expect(origin("embed.timeout_ms")).toMatchObject({ value: "150", origin: "default" })
    expect((await warmDex(home, ["config", "unset", "embed.provider"])).stdout).toBe(
      "embed.provider is none (default).\n",
    )
    expect(await warmDex(home, ["config", "get", "embed.model"])).toMatchObject({
      code: 0,
      stdout: "nomic-embed-text\n",
    })
    expect(await warmDex(home, ["config", "get", "embed.url"])).toMatchObject({ code: 1, stdout: "" })
  })

  test("says so if the environment overrides what was set", async () => {
    const run = await warmDex(tempDir(), ["config", "set", "embed.model", "a"], { DEX_EMBED_MODEL: "b" })
    expect(run).toMatchObject({
      stdout: "embed.model is b.\n",
      stderr: expect.stringMatching(/\$DEX_EMBED_MODEL is set/),
    })
  })

  test("says where text is sent if it leaves the machine, and nothing if it does not", async () => {
    const sends = async (provider: string, url?: string) => {
      const env = { DEX_EMBED_PROVIDER: provider, ...(url && { DEX_EMBED_URL: url }) }
      return JSON.parse((await warmDex(tempDir(), ["config", "--json"], env)).stdout).sends_text_to
    }
    expect(await sends("openai")).toBe("api.openai.com")
    expect(await sends("ollama", "http://gpu.local:11434")).toBe("gpu.local:11434")
    expect(await sends("ollama")).toBeUndefined()
    expect(await sends("none", "https://api.example")).toBeUndefined()
  })

  test("says where ask, chat and map would send text, if that is not this machine", async () => {
    const server = async (env: Record<string, string>) =>
      JSON.parse((await warmDex(tempDir(), ["config", "--json"], env)).stdout).model_server
    expect(await server({})).toBeUndefined()
    expect(await server({ DEX_LLM_API_KEY: "sk-x" })).toBe("api.openai.com")
    expect(await server({ DEX_LLM_PROVIDER: "http://gpu.local:8000/v1" })).toBe("gpu.local:8000")
    expect(await server({ DEX_LLM_PROVIDER: "http://127.0.0.1:11434/v1" })).toBeUndefined()
  })

  test("reads a key from a pipe into its own file, and never shows it", async () => {
    const home = tempDir()
    const run = await dex(home, ["config", "set", "llm.api_key"], {}, undefined, "sk-from-a-pipe\n")
    expect(run).toMatchObject({ code: 0, stdout: "The key is stored in ~/.dex/llm.key, which only you can read.\n" })
    expect(statSync(join(home, ".dex", "llm.key")).mode & 0o777).toBe(0o600)
    expect(readFileSync(join(home, ".dex", "llm.key"), "utf8")).toBe("sk-from-a-pipe\n")
    const listed = await warmDex(home, ["config"], {})
    expect(listed.stderr).toMatch(/The key for llm is taken from ~\/\.dex\/llm\.key/)
    expect(JSON.stringify([run, listed])).not.toContain("sk-from")
    const none = await dex(home, ["config", "set", "llm.api_key"], {}, undefined, "\n")
    expect(none).toMatchObject({ code: 2, stderr: expect.stringMatching(/No key was given, so nothing was changed/) })
    const other = await dex(home, ["config", "set", "aws.api_key"], {}, undefined, "x")
    expect(other).toMatchObject({ code: 2, stderr: expect.stringMatching(/Which key\?.*llm\.api_key/) })
  })

  test("never prints a key", async () => {
    const home = tempDir()
    mkdirSync(join(home, ".dex"))
    writeFileSync(join(home, ".dex", "embed.key"), "sk-in-the-file", { mode: 0o600 })
    const env = { DEX_RERANK_API_KEY: "sk-in-the-env" }
    await warmDex(home, ["config", "set", "embed.api_key_from", "~/.dex/embed.key"], env)
    const plain = await warmDex(home, ["config"], env)
    const json = await warmDex(home, ["config", "--json"], env)
    const typed = await warmDex(home, ["config", "set", "embed.api_key", "sk-typed"], env)
    expect(plain.stderr).toMatch(/The key for embed is taken from ~\/\.dex\/embed\.key/)
    expect(plain.stderr).toMatch(/The key for rerank is taken from \$DEX_RERANK_API_KEY/)
    expect(typed).toMatchObject({ code: 2, stderr: expect.stringMatching(/never read from the command line/) })
    expect(JSON.stringify([plain, json, typed])).not.toMatch(/sk-(in|typed)/)
    expect(readFileSync(join(home, ".dex", "config.json"), "utf8")).not.toContain("sk-")
  })

  test("accepts old names, and stores and shows the new ones", async () => {
    const home = tempDir()
    const run = async (...words: string[]) => (await warmDex(home, ["config", ...words])).stdout
    expect(await run("set", "proactive.enable_docs", "false")).toBe("proactive.off is document.\n")
    expect(await run("set", "proactive.enable_fixes", "off")).toBe("proactive.off is document,fix.\n")
    expect(await run("unset", "proactive.enable_docs")).toBe("proactive.off is fix.\n")
    expect(await run("set", "llm.api_key_env", "MINE")).toBe("llm.api_key_from is MINE.\n")
    expect(await run("set", "llm.api_key_file", "/k")).toBe("llm.api_key_from is MINE,/k.\n")
    expect(await run("unset", "llm.api_key_env")).toBe("llm.api_key_from is /k.\n")
    expect(await run("get", "llm.api_key_file")).toBe("/k\n")
    await run("set", "search.rerank", "http://127.0.0.1:1")
    expect(await run("set", "rerank.url", "http://127.0.0.1:2")).toBe("search.rerank is http://127.0.0.1:2.\n")
    expect(await run("set", "search.rerank", "on")).toBe("search.rerank is http://127.0.0.1:2.\n")
    expect(JSON.parse(readFileSync(join(home, ".dex", "config.json"), "utf8"))).toEqual({
      "proactive.off": "fix",
      "llm.api_key_from": "/k",
      "search.rerank": "http://127.0.0.1:2",
    })
    expect(await run("unset", "rerank.url")).toBe("search.rerank is off (default).\n")
    for (const words of [
      ["rerank.url", "http://127.0.0.1:2"],
      ["search.rerank", "on"],
    ])
      expect(await warmDex(home, ["config", "set", ...words])).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/search\.rerank is now the reranking server's address.*Nothing was changed/),
      })
  })

  test("says so if the project's file adds to what was set", async () => {
    const home = tempDir()
    const project = join(home, "p")
    mkdirSync(project)
    writeFileSync(join(project, ".dex.json"), '{"proactive.off":"warning"}')
    expect(await warmDex(home, ["config", "set", "proactive.off", "fix"], {}, project)).toMatchObject({
      stdout: "proactive.off is fix,warning.\n",
      stderr: expect.stringContaining("In this project, .dex.json switches off even more."),
    })
  })

  test("says what an old name in the file is called now", async () => {
    const home = tempDir()
    mkdirSync(join(home, ".dex"))
    writeFileSync(join(home, ".dex", "config.json"), '{"proactive.enable_docs":false}', { mode: 0o600 })
    const { stdout, stderr } = await warmDex(home, ["config"], { DEX_LLM_API_KEY_ENV: "MINE" })
    expect(stdout).toMatch(/^proactive\.off +document {2}\(config\.json\)$/m)
    expect(stderr).toMatch(/config\.json: proactive\.enable_docs is called proactive\.off now/)
    expect(stderr).toMatch(/DEX_LLM_API_KEY_ENV: llm\.api_key_env is called llm\.api_key_from now/)
    expect(stdout).not.toMatch(/enable_|api_key_(env|file)/)
  })

  test.each([
    [["set", "embed.modle", "x"], /There is no setting "embed\.modle"/],
    [["set", "model", "x"], /Did you mean embed\.model or rerank\.model or llm\.model/],
    [["set", "embed.dims", "many"], /embed\.dims must be a whole number\. Nothing was changed/],
    [["set", "embed.dims"], /What should embed\.dims be/],
    [["delete"], /dex config list \| get NAME/],
    [["get"], /dex config list \| get NAME/],
  ])("dex config %j says what to type", async (words, message) => {
    const home = tempDir()
    const run = await warmDex(home, ["config", ...words])
    expect(run).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(message) })
  })
})
