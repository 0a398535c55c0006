import { type Loaded, loadSettings, oldSetting } from "../../config/load.ts"
import { KEYS_FOR, keyPlace } from "../../config/secret.ts"
import { hasLlm, rerankUrl } from "../../config/servers.ts"
import {
  isSetting,
  readTextSetting,
  readTextValue,
  SETTING_NAMES,
  SETTINGS,
  type SettingName,
  type SettingValue,
  variableOf,
} from "../../config/settings.ts"
import { convertedSetting, writeSetting } from "../../config/write.ts"
import { DexError } from "../../core/error.ts"
import { isAgentProvider } from "../../core/model-run.ts"
import { localPackage } from "../../embed/local-package.ts"
import { embedUrl } from "../../embed/open-embedder.ts"
import { isThisMachine } from "../../net/client.ts"
import type { Dex } from "../context.ts"
import type { ConfigInput } from "./config.ts"

export async function run(dex: Dex, input: ConfigInput) {
  const [action = "list", name, ...rest] = input.words
  switch (action) {
    case "list":
      if (name !== undefined) throw usageError()
      return report(dex, SETTING_NAMES)
    case "get":
      if (rest.length > 0) throw usageError()
      return report(dex, [settingNamed(name)])
    case "set": {
      const value = valueFrom(dex, name, rest.join(" "))
      if (name === "embed.provider" && value === "local") return chooseLocal(dex, input.yes === true)
      return change(dex, settingNamed(name), value)
    }
    case "unset":
      if (rest.length > 0) throw usageError()
      return change(dex, settingNamed(name), renamedTo(name) && convertedSetting(dex.home.config, name!, undefined))
    default:
      throw usageError()
  }
}

/**
 * Reports the cost of the local model and, once confirmed, installs it if necessary. Then embeds the history in the background.
 */
async function chooseLocal(dex: Dex, yes: boolean) {
  const { localCost, installLocalModel } = await import("./local-model.ts")
  const cost = await localCost(dex)
  if (!cost.isInstalled && !yes)
    return { ...report(dex, ["embed.provider"]), asked: true, local_model: { installed: false, ...cost.figures } }
  if (!cost.isInstalled) await installLocalModel(dex)
  const changed = change(dex, "embed.provider", "local")
  const started = dex.hasHistory() && (await dex.syncInBackground?.()) === true
  return { ...changed, local_model: { installed: !cost.isInstalled, ...cost.figures, started } }
}

function change(dex: Dex, name: SettingName, value: SettingValue | undefined) {
  writeSetting(dex.home.config, name, value)
  return { ...report(dex, [name]), changed: true }
}

function report(dex: Dex, names: SettingName[]) {
  const where = { env: dex.machine.env, home: dex.machine.home }
  const loaded = loadSettings({ file: dex.home.config, env: where.env, project: dex.project })
  const { settings, origins } = loaded
  const url = embedUrl({
    provider: settings["embed.provider"],
    url: settings["embed.url"],
  })
  const away = [url, rerankUrl(settings)].filter(
    (place): place is string => place !== undefined && !isThisMachine(new URL(place).hostname),
  )
  const chosen = settings["llm.provider"]
  const server = isAgentProvider(chosen) ? undefined : new URL(chosen)
  return {
    file: dex.home.config,
    settings: names.map((name) => {
      const { schema, default: usual } = SETTINGS[name]
      return {
        name,
        value: settings[name] === undefined ? undefined : asText(settings[name]),
        default: usual === undefined ? undefined : asText(usual),
        origin: origins[name],
        variable: variableOf(name),
        about: schema.description ?? "",
      }
    }),
    sends_text_to: away.length > 0 ? [...new Set(away.map((place) => new URL(place).host))].join(", ") : undefined,
    model_server: hasLlm(settings, where) && server && !isThisMachine(server.hostname) ? server.host : undefined,
    model_agent: server ? undefined : chosen,
    keys: KEYS_FOR.flatMap((server) => {
      const found = keyPlace(server, settings, where)
      return found ? [{ server, ...found }] : []
    }),
    problems: [...loaded.problems, ...loaded.renamed, ...unfinishedSettings(loaded, dex.home.dir)],
  }
}

/** Settings that cannot work yet, with the command that fixes each. */
function unfinishedSettings({ settings }: Loaded, dexDir: string): string[] {
  const problems: string[] = []
  const provider = settings["embed.provider"]
  if (provider === "local" && !localPackage(dexDir))
    problems.push("embed.provider is local, but the model is not installed: dex config set embed.provider local")
  if (provider !== "none" && provider !== "local" && settings["embed.model"] === undefined)
    problems.push(
      `embed.provider is ${provider}, but no model is chosen: dex config set embed.model ${provider === "openai" ? "text-embedding-3-small" : "nomic-embed-text"}`,
    )
  if (rerankUrl(settings) !== undefined && settings["rerank.model"] === undefined)
    problems.push("search.rerank is set, but rerank.model is not: dex config set rerank.model …")
  return problems
}

function settingNamed(name: string | undefined): SettingName {
  if (name === undefined) throw usageError()
  if (isSetting(name)) return name
  const now = renamedTo(name)
  if (now) return now
  if (/key|token|secret|password/i.test(name))
    throw new DexError(
      "usage",
      "Keys are never read from the command line, where they would stay in the shell's history. `dex config set llm.api_key` (or embed.api_key, rerank.api_key), without the key, asks for it and stores it in a file that only you can read. Or name a variable that contains it: `dex config set llm.api_key_from MY_VARIABLE`.",
    )
  const end = name.split(".").at(-1)!
  const close = SETTING_NAMES.filter((one) => one.endsWith(end) || one.startsWith(name))
  const hint = close.length > 0 ? `Did you mean ${close.join(" or ")}?` : "`dex config list` shows all settings."
  throw new DexError("usage", `There is no setting "${name}". ${hint}`)
}

/** The setting that replaced this one; undefined if it has the name that it always had. */
function renamedTo(name: string | undefined): SettingName | undefined {
  return name === undefined || isSetting(name) ? undefined : oldSetting(name)?.now
}

/** The message does not repeat the value: someone may have typed a key in the wrong place. */
function valueFrom(dex: Dex, typed: string | undefined, text: string): SettingValue | undefined {
  const name = settingNamed(typed)
  if (text.trim() === "")
    throw new DexError("usage", `What should ${name} be? dex config set ${name} … (or: dex config unset ${name})`)
  const old = oldSetting(typed!)
  const asBefore = old && readTextSetting(typed!, old.was, text)
  if (asBefore && "ok" in asBefore) return convertedValue(dex, typed!, asBefore.ok)
  const result = asBefore && !isSetting(typed!) ? asBefore : readTextValue(name, text)
  if ("wrong" in result) throw new DexError("usage", `${result.wrong}. Nothing was changed.`)
  return result.ok
}

/** Reranking needs an address to be switched on, and an address alone never switched it on. */
function convertedValue(dex: Dex, old: string, value: SettingValue): SettingValue | undefined {
  const converted = convertedSetting(dex.home.config, old, value)
  if (oldSetting(old)!.now === "search.rerank" && (converted === "on" || (converted === "off" && value !== false)))
    throw new DexError(
      "usage",
      "search.rerank is the reranking server's address now: dex config set search.rerank http://… Nothing was changed.",
    )
  return converted
}

function asText(value: SettingValue): string {
  return typeof value === "boolean" ? (value ? "on" : "off") : String(value)
}

function usageError(): DexError {
  return new DexError(
    "usage",
    "dex config list | get NAME | set NAME VALUE | unset NAME. For example: dex config set embed.provider ollama",
  )
}
