import { isAbsolute } from "node:path"
import { AGENT_PROVIDERS, isAgentProvider, MODEL_AGENTS } from "../core/model-run.ts"
import { choice, decimal, flag, type Infer, integer, readAs, type Schema, text } from "../core/schema.ts"
import { KINDS } from "../core/suggestion.ts"

/**
 * Every setting, declared once: name, type, default and description. Its environment variable is its name in capitals:
 * `DEX_EMBED_MODEL` for `embed.model`.
 */
export const SETTINGS = {
  "embed.provider": setting(
    choice(
      ["none", "local", "openai", "ollama"],
      "What turns text into vectors, so that search also finds other words with the same meaning. local: a model on this machine, without a server. openai: any server that speaks /v1/embeddings.",
    ),
    { default: "none", narrowest: "none" },
  ),
  "embed.url": setting(
    text(
      "The embedding server's address. Default: https://api.openai.com/v1 for openai, http://127.0.0.1:11434 for ollama.",
    ),
    { check: checkServerUrl },
  ),
  "embed.model": setting(text("The embedding model's name, as the server knows it.", { minLength: 1 })),
  "embed.dims": setting(
    integer("How many numbers a vector has. Default: ask the server once.", { minimum: 16, maximum: 3968 }),
  ),
  "embed.api_key_from": keySetting("embed", "embedding"),
  "embed.timeout_ms": setting(
    integer("How long a search waits for its query's vector before it answers by words alone.", {
      minimum: 10,
      maximum: 60_000,
    }),
    { default: 150 },
  ),
  traces: setting(flag("Record how every answer was found, for `dex trace`."), {
    default: true,
    narrowest: false,
  }),
  "search.rerank": setting(
    text(
      "The address of a server that reorders the best 20 results: any that speaks /rerank. off: keep dex's own order.",
    ),
    { default: "off", narrowest: "off", check: checkUrlOrOff },
  ),
  "rerank.model": setting(text("The reranking model's name, as the server knows it.", { minLength: 1 })),
  "rerank.timeout_ms": setting(
    integer("How long a search waits for the reranking server before it answers in its own order.", {
      minimum: 10,
      maximum: 60_000,
    }),
    { default: 1_000 },
  ),
  "rerank.api_key_from": keySetting("rerank", "reranking"),
  "proactive.enabled": setting(flag("Make suggestions unasked: through the agents' hooks, and to subscriptions."), {
    default: true,
    narrowest: false,
  }),
  "proactive.mode": setting(
    choice(
      ["log", "speak"],
      "log: hooks only record what they would say. speak: they say it. If unset, they say what is certain (fixes, notes, decisions that you typed), record the rest, and after a week `dex` asks you.",
    ),
    { narrowest: "log" },
  ),
  "proactive.max_suggestions": setting(
    integer("The maximum number of suggestions at a time.", { minimum: 1, maximum: 5 }),
    {
      default: 5,
    },
  ),
  "proactive.min_relevance_score": setting({
    ...decimal("How likely a suggestion must be to help, from 0 to 1. Default: fitted on real sessions."),
    minimum: 0,
    maximum: 1,
  }),
  "proactive.recent_change_days": setting(
    integer("How many days a git change counts as recent.", { minimum: 1, maximum: 365 }),
    { default: 7 },
  ),
  "proactive.off": setting(
    text(
      `The kinds of suggestions that are switched off, separated by commas: ${KINDS.join(", ")}. A project's file can only add to them.`,
    ),
    { default: "none", check: checkKinds, isExtendable: true },
  ),
  "llm.provider": setting(
    text(
      `The model that answers: the address of any server that speaks /chat/completions, usually ending in /v1; or an agent that you have: ${MODEL_AGENTS.join(", ")}, or agent for the one that is installed.`,
    ),
    { default: "https://api.openai.com/v1", check: checkUrlOrAgent },
  ),
  "llm.allowed_agents": setting(
    text(
      "The agents that dex may use as a model, separated by commas. What dex sends them goes to their providers; dex asks you before the first time.",
    ),
    { check: checkModelAgents, isUserOnly: true },
  ),
  "llm.model": setting(
    text("The model's name, as the server knows it. If unset, an agent chooses its own.", { minLength: 1 }),
    { default: "gpt-4o-mini" },
  ),
  "llm.temperature": setting({ ...decimal("The model's temperature."), minimum: 0, maximum: 2 }, { default: 0 }),
  "llm.max_tokens": setting(
    integer("The maximum number of tokens in one reply of the model.", { minimum: 16, maximum: 1_000_000 }),
    {
      default: 4096,
    },
  ),
  "llm.api_key_from": keySetting("llm", "model"),
  "deliver.allow_hosts": setting(
    text(
      "Hosts that may receive webhooks although they are private or without TLS, separated by commas: localhost:3000,hooks.lan.",
    ),
    { check: checkHosts },
  ),
  "usage.plan": setting(
    text(
      "The subscription that you pay for, such as Max 20x. `dex usage` then says that it shows list prices, which your subscription covers.",
    ),
  ),
  "usage.budget": setting(
    text(
      "What you want to spend, in dollars at list price: 20/day, 80/week, or both, separated by a comma. `dex usage` and its status line warn from 80 % on.",
    ),
    { check: checkBudget },
  ),
  "usage.prices_file": setting(
    text(
      "A JSON file with your own prices, in dollars per million tokens. They take precedence over the prices that dex knows.",
    ),
    { check: checkFullPath },
  ),
  "hub.share": setting(
    flag(
      "Send what you shared with `dex hub share`. This setting alone shares nothing; false in a project's file keeps the project on this machine.",
    ),
    { default: true, narrowest: false },
  ),
  agents: setting(
    text(
      "Your own agents, separated by commas: full paths of modules, or names of packages in ~/.dex/node_modules. They run inside dex.",
    ),
    { check: checkModules, isUserOnly: true },
  ),
  "sources.extra_roots": setting(
    text(
      "Other homes to read agents' sessions from, separated by commas: a container's home, another user's, /mnt/c/Users/you under WSL. dex searches each of them like your own home.",
    ),
    { check: checkHomes },
  ),
}

export type SettingName = keyof typeof SETTINGS
export type Settings = { [N in SettingName]: (typeof SETTINGS)[N]["default"] }
export type SettingValue = string | number | boolean

export type Setting<T> = {
  schema: Schema
  default: T
  /** Returns what is wrong with a value of the right type. Never repeats the value, which may be a key in the wrong place. */
  check?: (value: string) => string | undefined
  /** The one value that a project's own file may choose. */
  narrowest?: SettingValue
  /** True for a list to which a project's own file may add. */
  isExtendable?: boolean
  /** True if only the user's own file may contain the setting, because dex runs what it names. */
  isUserOnly?: boolean
}

type SettingOptions<S extends Schema> = { default: Infer<S> } & Pick<
  Setting<unknown>,
  "check" | "narrowest" | "isExtendable" | "isUserOnly"
>

export function setting<S extends Schema>(schema: S, options: SettingOptions<S>): Setting<Infer<S>>
export function setting<S extends Schema>(
  schema: S,
  options?: Omit<SettingOptions<S>, "default">,
): Setting<Infer<S> | undefined>
export function setting(schema: Schema, options: Partial<SettingOptions<Schema>> = {}): Setting<unknown> {
  return { schema, default: undefined, ...options }
}

function keySetting(prefix: string, server: string) {
  const variable = `DEX_${prefix.toUpperCase()}_API_KEY`
  return setting(
    text(
      `Where the ${server} server's key is: names of environment variables, and full paths of files that only you can read (chmod 600), separated by commas. The first that has one counts. If no variable is named, ${variable} comes first.`,
    ),
    { default: variable, check: checkKeyPlaces },
  )
}

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[]

export function isSetting(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name)
}

export function variableOf(name: string): string {
  return `DEX_${name.toUpperCase().replaceAll(".", "_")}`
}

export type ReadSetting = { ok: SettingValue } | { wrong: string }

/** Checks a value. Returns the value, or a description of what is wrong, which never repeats the value. */
export function readValue(name: SettingName, value: unknown): ReadSetting {
  return readSetting(name, SETTINGS[name], value)
}

/** Like `readValue`, for a value that is text because it came from the environment or a command line. */
export function readTextValue(name: SettingName, value: string): ReadSetting {
  return readTextSetting(name, SETTINGS[name], value)
}

export function readSetting(name: string, { schema, check }: Setting<unknown>, value: unknown): ReadSetting {
  const result = readAs(schema, value)
  if ("wrong" in result) return { wrong: result.wrong.replace(/^input /, `${name} `) }
  const problem = check?.(result.ok as string)
  return problem === undefined ? { ok: result.ok as SettingValue } : { wrong: `${name} ${problem}` }
}

export function readTextSetting(name: string, setting: Setting<unknown>, value: string): ReadSetting {
  const { type } = setting.schema
  if (type === "integer") return readSetting(name, setting, /^-?\d+$/.test(value.trim()) ? Number(value) : value)
  if (type === "number") return readSetting(name, setting, /^-?\d+(\.\d+)?$/.test(value.trim()) ? Number(value) : value)
  if (type !== "boolean") return readSetting(name, setting, value.trim())
  const typed = value.trim().toLowerCase()
  if (["1", "true", "on", "yes"].includes(typed)) return { ok: true }
  return ["0", "false", "off", "no"].includes(typed) ? { ok: false } : { wrong: `${name} must be on or off` }
}

/** Splits a setting that contains several names, separated by commas. */
export function splitNames(value: string | undefined): string[] {
  return (value ?? "").split(",").flatMap((name) => name.trim() || [])
}

function checkUrlOrAgent(value: string): string | undefined {
  if (isAgentProvider(value)) return undefined
  return URL.canParse(value)
    ? checkServerUrl(value)
    : `must be an address, like http://127.0.0.1:11434/v1, or one of ${AGENT_PROVIDERS.join(", ")}`
}

function checkModelAgents(value: string): string | undefined {
  const isModelAgent = (name: string) => (MODEL_AGENTS as readonly string[]).includes(name)
  return splitNames(value).every(isModelAgent)
    ? undefined
    : `must be among ${MODEL_AGENTS.join(", ")}, separated by commas`
}

function checkUrlOrOff(value: string): string | undefined {
  if (value === "off") return undefined
  return URL.canParse(value)
    ? checkServerUrl(value)
    : "must be the server's address, like http://127.0.0.1:8080/v1, or off"
}

function checkKinds(value: string): string | undefined {
  const names: readonly string[] = ["none", ...KINDS]
  return splitNames(value).every((name) => names.includes(name))
    ? undefined
    : `must be among ${KINDS.join(", ")}, separated by commas, or none`
}

export function checkServerUrl(value: string): string | undefined {
  if (!URL.canParse(value)) return "must be an address, like http://127.0.0.1:11434"
  const { protocol, username, password, search, hash } = new URL(value)
  if (protocol !== "http:" && protocol !== "https:") return "must begin with http:// or https://"
  if (username || password || search || hash)
    return "must not contain a password or anything after a ? or #, because addresses are printed. Keep keys in a file or the environment"
  return undefined
}

function checkBudget(value: string): string | undefined {
  return value.split(",").every((part) => BUDGET.test(part.trim()))
    ? undefined
    : "must be dollars for a day or a week, such as 20/day or 20/day,80/week"
}

const BUDGET = /^(\d{1,9}(?:\.\d{1,2})?)\/(day|week)$/

/** The dollars for a day and for a week in the setting `usage.budget`. Nothing counts as no budget. */
export function parseBudgets(value: string | undefined): { day?: number; week?: number } {
  const parts = (value ?? "").split(",").flatMap((part): [string, number][] => {
    const [, dollars, period] = BUDGET.exec(part.trim()) ?? []
    return period !== undefined && Number(dollars) > 0 ? [[period, Number(dollars)]] : []
  })
  return Object.fromEntries(parts)
}

function checkHosts(value: string): string | undefined {
  return value.split(",").every((host) => /^([\w.-]+|\[[\da-f:.]+\])(:\d{1,5})?$/i.test(host.trim()))
    ? undefined
    : "must be names of hosts, with or without a port, separated by commas: localhost:3000,hooks.lan"
}

function checkModules(value: string): string | undefined {
  return splitNames(value).every((name) => /^(\/|~\/|[a-z]:[\\/]|@?[a-z0-9][\w.-]*(\/[a-z0-9][\w.-]*)?$)/i.test(name))
    ? undefined
    : "must be full paths or names of packages, separated by commas: ~/agents/mine.mjs,dex-agent-other"
}

export function checkFullPath(value: string): string | undefined {
  return isAbsolute(value) || value.startsWith("~/") ? undefined : "must be a full path: /… or ~/…"
}

function checkHomes(value: string): string | undefined {
  return splitNames(value).every((path) => checkFullPath(path) === undefined)
    ? undefined
    : "must be full paths, separated by commas: /mnt/c/Users/you,~/containers/dev/home"
}

/** The maximum number of places for one key. It is limited because each may be a file that dex has to look for. */
const MAX_KEY_PLACES = 8

function checkKeyPlaces(value: string): string | undefined {
  const places = splitNames(value)
  if (places.length > MAX_KEY_PLACES) return `may name at most ${MAX_KEY_PLACES} places`
  return places.length > 0 && places.every((place) => isVariable(place) || checkFullPath(place) === undefined)
    ? undefined
    : "must be names of environment variables (capitals) or full paths (/… or ~/…), separated by commas, not the key itself"
}

export function isVariable(place: string): boolean {
  return checkVariableName(place) === undefined
}

export function checkVariableName(value: string): string | undefined {
  return /^[A-Z_][A-Z0-9_]{0,63}$/.test(value)
    ? undefined
    : "must be the name of an environment variable (capitals), not the key itself"
}
