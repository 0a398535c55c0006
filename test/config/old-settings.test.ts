import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { type LoadOptions, loadSettings, OLD_SETTINGS } from "../../src/config/load.ts"
import { wantedKinds } from "../../src/config/proactive.ts"
import { keyPlace } from "../../src/config/secret.ts"
import { rerankUrl } from "../../src/config/servers.ts"
import { isSetting, SETTING_NAMES, variableOf } from "../../src/config/settings.ts"
import { writeKey, writeSetting } from "../../src/config/write.ts"
import { KINDS } from "../../src/core/suggestion.ts"
import { tempDir } from "../support/temp.ts"

type Places = { config?: unknown; project?: unknown; env?: LoadOptions["env"] }

function load({ config, project, env = {} }: Places) {
  const dir = tempDir()
  if (config !== undefined) writeFileSync(join(dir, "config.json"), JSON.stringify(config), { mode: 0o600 })
  if (project !== undefined) writeFileSync(join(dir, ".dex.json"), JSON.stringify(project), { mode: 0o600 })
  return loadSettings({ file: join(dir, "config.json"), env, project: dir })
}

const OFF = "proactive.off"
const RERANK = "search.rerank"
const KEY = "embed.api_key_from"

/** For each old name: what may be next to it, a value, the setting it is now, and what that is then. */
const OLD: Record<string, { beside?: object; value: string | boolean; now: string; is: string; default: string }> = {
  "proactive.enable_fixes": { value: false, now: OFF, is: "fix", default: "none" },
  "proactive.enable_decisions": { value: false, now: OFF, is: "decision", default: "none" },
  "proactive.enable_recent_changes": { value: false, now: OFF, is: "change", default: "none" },
  "proactive.enable_docs": { value: false, now: OFF, is: "document", default: "none" },
  "proactive.enable_related_code": { value: false, now: OFF, is: "related_code", default: "none" },
  "proactive.enable_warnings": { value: false, now: OFF, is: "warning", default: "none" },
  "proactive.enable_conversations": { value: false, now: OFF, is: "conversation", default: "none" },
  "rerank.url": { beside: { [RERANK]: true }, value: "http://h:1", now: RERANK, is: "http://h:1", default: "off" },
  "search.rerank": {
    beside: { "rerank.url": "http://h:1" },
    value: true,
    now: RERANK,
    is: "http://h:1",
    default: "off",
  },
  ...Object.fromEntries(
    ["embed", "rerank", "llm"].flatMap((of) => {
      const now = `${of}.api_key_from`
      const usual = `DEX_${of.toUpperCase()}_API_KEY`
      return [
        [`${of}.api_key_env`, { value: "MY_KEY", now, is: "MY_KEY", default: usual }],
        [`${of}.api_key_file`, { value: "/k", now, is: `${usual},/k`, default: usual }],
      ]
    }),
  ),
}

describe("each old name", () => {
  test("is in this table, and there are at most 30 settings", () => {
    expect(Object.keys(OLD).sort()).toEqual(Object.keys(OLD_SETTINGS).sort())
    expect(SETTING_NAMES.length).toBeLessThanOrEqual(30)
  })

  test.each(Object.entries(OLD))("%s works in the user's file, and its new name is reported", (name, old) => {
    const { settings, origins, problems, renamed } = load({ config: { ...old.beside, [name]: old.value } })
    expect(settings).toMatchObject({ [old.now]: old.is })
    expect(origins).toMatchObject({ [old.now]: "config" })
    expect(problems).toEqual([])
    if (name !== old.now) expect(renamed).toEqual([expect.stringContaining(`${name} is called ${old.now} now`)])
  })

  test.each(Object.entries(OLD))("%s works as a variable", (name, old) => {
    const given = Object.entries({ ...old.beside, [name]: old.value })
    const env = Object.fromEntries(given.map(([one, value]) => [variableOf(one), String(value)]))
    const { settings, origins, problems } = load({ env })
    expect(settings).toMatchObject({ [old.now]: old.is })
    expect(origins).toMatchObject({ [old.now]: "environment" })
    expect(problems).toEqual([])
  })

  test.each(Object.entries(OLD).filter(([name]) => !isSetting(name)))(
    "%s is ignored next to its new name, and reported",
    (name, old) => {
      const value = old.now === OFF ? "none" : old.now === RERANK ? "http://new:1" : "NEW_KEY"
      const { settings, problems } = load({ config: { [name]: old.value, [old.now]: value } })
      expect(settings).toMatchObject({ [old.now]: value })
      expect(problems).toEqual([
        expect.stringMatching(`${name} is called ${old.now} now, which is set here too. It was ignored`),
      ])
    },
  )

  test.each(Object.entries(OLD))("%s with a value of the wrong type is reported, without the value", (name, old) => {
    for (const value of [null, 7, {}, ["hunter2"], "hunter2 hunter2", "", "hunter2,".repeat(9_000)]) {
      const { settings, problems } = load({ config: { [name]: value } })
      expect(settings).toMatchObject({ [old.now]: old.default })
      expect(problems).toHaveLength(1)
      expect(problems[0]).not.toContain("hunter2")
      expect(problems[0]).toContain(name)
    }
  })

  test.each(Object.entries(OLD))("%s disappears from the file when its new name is written", (name, old) => {
    const file = join(tempDir(), "config.json")
    writeFileSync(file, JSON.stringify({ ...old.beside, [name]: old.value, "embed.model": "m" }), { mode: 0o600 })
    writeSetting(file, old.now as typeof KEY, undefined)
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ "embed.model": "m" })
  })
})

describe("which place wins", () => {
  test("an old name in a nearer place beats a new name in a farther one", () => {
    const config = { [OFF]: "fix,document", [RERANK]: "http://far:1", [KEY]: "FAR,/far" }
    const env = {
      DEX_PROACTIVE_ENABLE_FIXES: "true",
      DEX_PROACTIVE_ENABLE_WARNINGS: "false",
      DEX_RERANK_URL: "http://near:1",
      DEX_EMBED_API_KEY_ENV: "NEAR",
    }
    expect(load({ config, env }).settings).toMatchObject({
      [OFF]: "document,warning",
      [RERANK]: "http://near:1",
      [KEY]: "NEAR,/far",
    })
    const { settings } = load({ config, project: { [RERANK]: false, "proactive.enable_decisions": false } })
    expect(settings).toMatchObject({ [RERANK]: "off", [OFF]: "fix,document,decision" })
    const again = load({ config, project: { [RERANK]: false }, env: { DEX_SEARCH_RERANK: "on" } })
    expect(again.settings).toMatchObject({ [RERANK]: "http://far:1" })
  })

  test("a new name in a nearer place beats an old name in a farther one", () => {
    const config = {
      "proactive.enable_docs": false,
      [RERANK]: true,
      "rerank.url": "http://far:1",
      "embed.api_key_file": "/far",
    }
    const env = { DEX_PROACTIVE_OFF: "fix", DEX_SEARCH_RERANK: "http://near:1", DEX_EMBED_API_KEY_FROM: "/near" }
    expect(load({ config, env }).settings).toMatchObject({ [OFF]: "fix", [RERANK]: "http://near:1", [KEY]: "/near" })
    expect(load({ config, env: { DEX_PROACTIVE_OFF: "none", DEX_SEARCH_RERANK: "off" } }).settings).toMatchObject({
      [OFF]: "none",
      [RERANK]: "off",
    })
  })

  /** How the settings were read while their old names were the only ones: each from the nearest place that has it. */
  function valueThen({ config, project, env }: Required<Places>, name: string, usual: unknown) {
    const variable = (env as Record<string, string>)[variableOf(name)]
    if (variable !== undefined) return typeof usual === "boolean" ? variable === "true" : variable
    if (usual !== undefined && (project as Record<string, unknown>)[name] === false) return false
    return (config as Record<string, unknown>)[name] ?? usual
  }

  test("old names alone mean what they meant, in every combination of places", () => {
    const kinds = ["fixes", "decisions", "recent_changes", "docs", "related_code", "warnings", "conversations"].map(
      (word) => `proactive.enable_${word}`,
    )
    let seed = 7
    const random = (n: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % n
    }
    const some = (names: string[], value: (name: string) => unknown) =>
      Object.fromEntries(names.filter(() => random(2) === 0).map((name) => [name, value(name)]))
    const switches = [...kinds, RERANK]
    const texts = ["rerank.url", "embed.api_key_env", "embed.api_key_file"]
    const textFor = (name: string) =>
      name.endsWith("url") ? `http://h:${1 + random(9)}` : name.endsWith("env") ? `V${random(9)}` : `/k${random(9)}`
    for (let i = 0; i < 500; i++) {
      const config = { ...some(switches, () => random(2) === 0), ...some(texts, textFor) }
      const project = { ...some(switches, () => random(2) === 0), ...some(texts, textFor) }
      const chosen = { ...some(switches, () => random(2) === 0), ...some(texts, textFor) }
      const env: Record<string, string> = Object.fromEntries(
        Object.entries(chosen).map(([name, value]) => [variableOf(name), String(value)]),
      )
      const places = { config, project, env }
      const { settings } = load(places)
      const wanted = KINDS.filter((_, at) => valueThen(places, kinds[at]!, true))
      expect([...wantedKinds(settings, [], "/p")], JSON.stringify(places)).toEqual(wanted)
      const address = valueThen(places, "rerank.url", undefined)
      expect(rerankUrl(settings), JSON.stringify(places)).toBe(valueThen(places, RERANK, false) ? address : undefined)
      const variable = valueThen(places, "embed.api_key_env", undefined) ?? "DEX_EMBED_API_KEY"
      const file = valueThen(places, "embed.api_key_file", undefined)
      const found = (set: Record<string, string>) => keyPlace("embed", settings, { env: set, home: "/" })
      expect(found({ [String(variable)]: "k" })).toEqual({ from: "environment", place: variable })
      expect(found({}), JSON.stringify(places)).toEqual(file === undefined ? undefined : { from: "file", place: file })
    }
  })
})

describe("a project's own file", () => {
  test("can only add to what is switched off", () => {
    const config = { [OFF]: "fix,document" }
    const off = (project: unknown) => load({ config, project }).settings[OFF]
    expect(off({ [OFF]: "warning,fix" })).toBe("fix,document,warning")
    for (const value of ["none", "", "document", [], {}, null, false, true, 0, "fix warning", "all", "-fix", "!fix"])
      expect(off({ [OFF]: value })).toBe("fix,document")
    expect(off({ "proactive.enable_fixes": true, "proactive.enable_docs": true })).toBe("fix,document")
    expect(off({ [OFF]: "none", "proactive.enable_fixes": true, "proactive.off ": "none" })).toBe("fix,document")
    expect(load({ config, project: { "proactive.enable_fixes": true } }).problems).toEqual([
      expect.stringMatching(/proactive\.enable_fixes may only be false in a project's file/),
    ])
  })

  test("can name no server and no place of a key, under any name", () => {
    const evil = ["https://evil.example/v1", "AWS_SECRET_ACCESS_KEY", "/etc/passwd", "~/.ssh/id_rsa,X", "on", true]
    const config = { [RERANK]: "http://mine:1", [KEY]: "MINE" }
    for (const name of [...Object.keys(OLD), RERANK, KEY, "rerank.api_key_from", "llm.api_key_from"])
      for (const value of evil) {
        const { settings, origins, problems } = load({ config, project: { [name]: value } })
        expect(settings, `${name} ${value}`).toEqual(load({ config }).settings)
        expect(Object.values(origins)).not.toContain("project")
        expect(problems).toHaveLength(1)
      }
  })

  test("cannot switch reranking back on, or give it an address while it is off", () => {
    const config = { [RERANK]: false, "rerank.url": "http://mine:1" }
    const project = { [RERANK]: true, "rerank.url": "https://evil.example" }
    expect(load({ config, project }).settings[RERANK]).toBe("off")
    expect(load({ config, project, env: { DEX_SEARCH_RERANK: "on" } }).settings[RERANK]).toBe("http://mine:1")
  })
})

describe("a list", () => {
  test("contains each kind once, however long the file's is", () => {
    expect(load({ config: { [OFF]: "fix, fix,none,".repeat(10_000) } }).settings[OFF]).toBe("fix")
    expect(load({ config: { [OFF]: "" } })).toMatchObject({ settings: { [OFF]: "none" }, problems: [] })
  })

  test("of a key's places has at most 8, tried in order", () => {
    const home = tempDir()
    writeFileSync(join(home, "second"), "k", { mode: 0o600 })
    const place = (from: string, env = {}) =>
      keyPlace("embed", load({ config: { [KEY]: from } }).settings, { env, home })
    expect(place("A,B,~/first,~/second", { B: "k" })).toEqual({ from: "environment", place: "B" })
    expect(place("~/first,~/second,A", { DEX_EMBED_API_KEY: "k" })).toEqual({
      from: "file",
      place: join(home, "second"),
    })
    expect(place("~/second", { DEX_EMBED_API_KEY: "k" })).toEqual({ from: "environment", place: "DEX_EMBED_API_KEY" })
    expect(place("~/first,~/third")).toEqual({ from: "file", place: join(home, "first") })
    expect(load({ config: { [KEY]: Array(9).fill("/a").join(",") } }).problems).toEqual([
      expect.stringMatching(/may name at most 8 places/),
    ])
  })

  test("of a key's places keeps the variables when a key is stored in a file", () => {
    const dir = tempDir()
    const home = { dir, config: join(dir, "config.json") }
    writeFileSync(home.config, JSON.stringify({ "llm.api_key_env": "MINE", "llm.api_key_file": "/old" }), {
      mode: 0o600,
    })
    const file = writeKey(home, "llm", "sk-new")
    expect(JSON.parse(readFileSync(home.config, "utf8"))).toEqual({ "llm.api_key_from": `MINE,${file}` })
  })
})
