import { closeSync } from "node:fs"
import { join } from "node:path"
import { messageOf } from "../core/error.ts"
import { isAbsent } from "../core/look-at.ts"
import { openFile, RefusedFile, readOpened } from "../core/read-file.ts"
import { flag, text } from "../core/schema.ts"
import type { ItemKind } from "../core/suggestion.ts"
import {
  checkFullPath,
  checkServerUrl,
  checkVariableName,
  isSetting,
  isVariable,
  type ReadSetting,
  readSetting,
  readTextSetting,
  SETTING_NAMES,
  SETTINGS,
  type Setting,
  type SettingName,
  type Settings,
  type SettingValue,
  setting,
  splitNames,
  variableOf,
} from "./settings.ts"

/** Where a value comes from, weakest first. */
export type SettingOrigin = "default" | "config" | "project" | "environment" | "flag"

export type LoadedSettings = {
  settings: Settings
  origins: Record<SettingName, SettingOrigin>
  /** Which values were ignored and why, in words for a person. dex works without them. */
  problems: string[]
  /** Which old names were used, and what they are called now. */
  renamed: string[]
}

export type LoadOptions = {
  /** The user's own file; see `dexHome`. */
  file: string
  env: Record<string, string | undefined>
  /** The folder of the current project, whose `.dex.json` may narrow settings. */
  project?: string
  flags?: Partial<Record<SettingName, SettingValue>>
}

const PROJECT_FILE = ".dex.json"
const MOST_BYTES = 256 << 10

type OldSetting = {
  now: SettingName
  /** The setting as it was: its type, and what a project's file could choose. */
  was: Setting<unknown>
  /** The new setting's value, given its value so far. `address` is the last reranking server that was named. */
  convert(value: SettingValue | undefined, soFar: string, address: string | undefined): string
}

/**
 * Settings that were renamed or merged, and `search.rerank`, which kept its name but was a switch before. The value of an old name
 * is combined with the value that weaker places chose for the new one: `proactive.enable_fixes` only adds a kind to
 * `proactive.off` or removes it.
 */
export const OLD_SETTINGS: Record<string, OldSetting> = {
  "proactive.enable_fixes": switchOf("fix"),
  "proactive.enable_decisions": switchOf("decision"),
  "proactive.enable_recent_changes": switchOf("change"),
  "proactive.enable_docs": switchOf("document"),
  "proactive.enable_related_code": switchOf("related_code"),
  "proactive.enable_warnings": switchOf("warning"),
  "proactive.enable_conversations": switchOf("conversation"),
  "rerank.url": {
    now: "search.rerank",
    was: setting(text(), { check: checkServerUrl }),
    convert: (address, soFar) => (soFar === "off" ? "off" : String(address ?? "off")),
  },
  "search.rerank": {
    now: "search.rerank",
    was: setting(flag(), { default: false, narrowest: false }),
    convert: (on, _, address) => (on ? (address ?? "on") : "off"),
  },
  "embed.api_key_env": keyVariable("embed.api_key_from"),
  "embed.api_key_file": keyFile("embed.api_key_from"),
  "rerank.api_key_env": keyVariable("rerank.api_key_from"),
  "rerank.api_key_file": keyFile("rerank.api_key_from"),
  "llm.api_key_env": keyVariable("llm.api_key_from"),
  "llm.api_key_file": keyFile("llm.api_key_from"),
}

export function oldSetting(name: string): OldSetting | undefined {
  return Object.hasOwn(OLD_SETTINGS, name) ? OLD_SETTINGS[name] : undefined
}

function switchOf(kind: ItemKind): OldSetting {
  return {
    now: "proactive.off",
    was: setting(flag(), { default: true, narrowest: false }),
    convert: (on, soFar) =>
      on === false ? kindsIn(soFar, kind) : kindsIn(...splitNames(soFar).filter((one) => one !== kind)),
  }
}

/** The old setting for the environment variable with a key. It replaces all variables in the new list; the files stay. */
function keyVariable(now: SettingName): OldSetting {
  return {
    now,
    was: setting(text(), { check: checkVariableName }),
    convert: (variable, soFar) => joinNames(variable ?? "", ...splitNames(soFar).filter((place) => !isVariable(place))),
  }
}

/** The old setting for the file with a key. It replaces all files in the new list; the variables stay. */
function keyFile(now: SettingName): OldSetting {
  return {
    now,
    was: setting(text(), { check: (path) => (path.includes(",") ? "must not contain a comma" : checkFullPath(path)) }),
    convert: (path, soFar) => joinNames(...splitNames(soFar).filter(isVariable), path ?? ""),
  }
}

function joinNames(...names: SettingValue[]): string {
  return names.filter((name) => name !== "").join(",")
}

/** All kinds in the lists, each once; `none` if there are none. */
function kindsIn(...lists: SettingValue[]): string {
  const names = new Set(lists.flatMap((list) => splitNames(String(list))))
  names.delete("none")
  return names.size === 0 ? "none" : [...names].join(",")
}

/** One place that settings come from. */
type Place = {
  origin: SettingOrigin
  given: [name: string, value: unknown][]
  /** The name of the place in messages about a value. */
  nameOf: (name: string) => string
  read: (name: string, setting: Setting<unknown>, value: unknown) => ReadSetting
}

/** defaults < the user's file < the project's file (narrowing only) < environment < flags. Never throws. */
export function loadSettings({ file, env, project, flags = {} }: LoadOptions): LoadedSettings {
  const problems: string[] = []
  const renamed: string[] = []
  const values: Record<string, SettingValue | undefined> = {}
  const origins: Record<string, SettingOrigin> = {}
  let address: string | undefined
  const put = (name: SettingName, value: SettingValue, origin: SettingOrigin) => {
    values[name] = value
    origins[name] = origin
  }
  const takeFrom = ({ origin, given, nameOf, read }: Place) => {
    const taken = new Set<string>()
    const old: [name: string, OldSetting, value: SettingValue][] = []
    const refuse = (name: string, wrong: string) => problems.push(`${nameOf(name)}: ${wrong}. It was ignored.`)
    for (const [name, value] of given) {
      const oldDefinition = oldSetting(name)
      const oldResult = oldDefinition && read(name, oldDefinition.was, value)
      if (oldResult && "ok" in oldResult) old.push([name, oldDefinition, oldResult.ok])
      else if (isSetting(name)) {
        const result = read(name, SETTINGS[name], value)
        if ("wrong" in result) refuse(name, result.wrong)
        else {
          const soFar = origin === "project" ? values[name]! : ""
          put(name, SETTINGS[name].isAddedTo ? kindsIn(soFar, result.ok) : result.ok, origin)
          taken.add(name)
          if (name === "search.rerank" && result.ok !== "off") address = String(result.ok)
        }
      } else refuse(name, oldResult?.wrong ?? `there is no setting ${printable(name)}`)
    }
    // Use the order of the table, so that an address comes before the switch that turns it on.
    const order = Object.keys(OLD_SETTINGS)
    old.sort(([one], [other]) => order.indexOf(one) - order.indexOf(other))
    for (const [name, { now, convert }, value] of old) {
      if (taken.has(now)) {
        refuse(name, `${name} is called ${now} now, which is set here too`)
        continue
      }
      if (name === "rerank.url") address = String(value)
      const converted = convert(value, String(values[now]), address)
      if (converted !== values[now]) put(now, converted, origin)
      if (name !== now) renamed.push(`${nameOf(name)}: ${name} is called ${now} now. It still works.`)
    }
  }
  for (const name of SETTING_NAMES) {
    values[name] = SETTINGS[name].default
    origins[name] = "default"
  }
  const userSettings = Object.entries(readObject(file, problems))
  takeFrom({ origin: "config", given: userSettings, nameOf: () => file, read: readSetting })
  if (project !== undefined) {
    const path = join(project, PROJECT_FILE)
    const given = Object.entries(readObject(path, problems))
    takeFrom({ origin: "project", given, nameOf: () => path, read: readProjectSetting })
  }
  takeFrom({ origin: "environment", given: environmentSettings(env, problems), nameOf: variableOf, read: readVariable })
  takeFrom({ origin: "flag", given: Object.entries(flags), nameOf: (name) => name, read: readSetting })
  if (values["search.rerank"] === "on") {
    problems.push("search.rerank is on, but no server is named: dex config set search.rerank http://…")
    values["search.rerank"] = "off"
  }
  problems.push(...misspeltVariables(env))
  return { settings: values as Settings, origins: origins as Record<SettingName, SettingOrigin>, problems, renamed }
}

function environmentSettings(env: LoadOptions["env"], problems: string[]): [name: string, value: unknown][] {
  return [...new Set([...SETTING_NAMES, ...Object.keys(OLD_SETTINGS)])].flatMap((name) => {
    const value = env[variableOf(name)]
    if (!value) return []
    if (!isSetting(name) || !SETTINGS[name].isOwn) return [[name, value]]
    problems.push(
      `${variableOf(name)}: ${name} decides what dex runs, so it can be set only in your own settings, with \`dex config set\`.`,
    )
    return []
  })
}

function readVariable(name: string, setting: Setting<unknown>, value: unknown): ReadSetting {
  return readTextSetting(name, setting, String(value))
}

/** Accepts only narrower values: a cloned repository must not be able to send its user's conversations to its own server. */
function readProjectSetting(name: string, setting: Setting<unknown>, value: unknown): ReadSetting {
  const { narrowest, isAddedTo } = setting
  if (isAddedTo) return readSetting(name, setting, value)
  if (narrowest === undefined)
    return { wrong: `${name} cannot be set by a project. Set it for yourself with \`dex config set\`` }
  return value === narrowest ? { ok: narrowest } : { wrong: `${name} may only be ${narrowest} in a project's file` }
}

/** Variables that look like settings but are not. Variables that contain API keys are exempt. */
function misspeltVariables(env: LoadOptions["env"]): string[] {
  const known = new Set([
    ...[...SETTING_NAMES, ...Object.keys(OLD_SETTINGS)].map(variableOf),
    "DEX_EMBED_API_KEY",
    "DEX_RERANK_API_KEY",
    "DEX_LLM_API_KEY",
  ])
  return Object.keys(env)
    .filter((name) => /^DEX_(DELIVER|EMBED|HUB|SEARCH|RERANK|LLM|PROACTIVE|SOURCES)_/.test(name) && !known.has(name))
    .map((name) => `${printable(name)}: there is no such setting. \`dex config list\` names them all.`)
}

/** The content of a settings file; empty if there is no such file. */
export function readObject(path: string, problems: string[]): Record<string, unknown> {
  const say = (what: string) => {
    problems.push(`${path}: ${what} All of it was ignored.`)
    return {}
  }
  let text: string
  try {
    const file = openFile(path)
    try {
      if (process.platform !== "win32" && file.stat.mode & 0o002)
        return say(`Everybody can write to it. Run: chmod 600 ${path}.`)
      text = readOpened(file, MOST_BYTES).toString("utf8")
    } finally {
      closeSync(file.fd)
    }
  } catch (error) {
    if (isAbsent(error)) return {}
    return say(error instanceof RefusedFile ? `It is ${error.message}.` : `It cannot be read (${messageOf(error)}).`)
  }
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // reported below, as for JSON that is not an object
  }
  return say("It is not a JSON object.")
}

function printable(name: string): string {
  return JSON.stringify(name.slice(0, 60))
}
