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

/** The possible origins of a value. Each takes precedence over those before it. */
export type SettingOrigin = "default" | "config" | "project" | "environment" | "flag"

export type LoadedSettings = {
  settings: Settings
  origins: Record<SettingName, SettingOrigin>
  /** Messages about values that were ignored, with the reasons. dex works without these values. */
  problems: string[]
  /** Messages about former names that were used, with their current names. */
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

export const PROJECT_FILE = ".dex.json"
/** The key of the documents that a repository names for everyone who works in it. */
export const DOCUMENTS_KEY = "collections"
const MAX_FILE_BYTES = 256 << 10

type OldSetting = {
  currentName: SettingName
  /** The definition of the former setting: its type, and what a project's file could choose. */
  formerDefinition: Setting<unknown>
  /**
   * Returns the new setting's value. `soFar` is its value before the old setting is applied, and `address` is the last reranking
   * server that was named.
   */
  convert(value: SettingValue | undefined, soFar: string, address: string | undefined): string
}

/**
 * Settings that were renamed or merged, and `search.rerank`, which kept its name but was a switch before. The value of an old
 * name is combined with the value that sources of lower precedence chose for the new one: `proactive.enable_fixes` only adds a
 * kind to `proactive.off` or removes it.
 */
export const OLD_SETTINGS: Record<string, OldSetting> = {
  "proactive.enable_fixes": kindSwitch("fix"),
  "proactive.enable_decisions": kindSwitch("decision"),
  "proactive.enable_recent_changes": kindSwitch("change"),
  "proactive.enable_docs": kindSwitch("document"),
  "proactive.enable_related_code": kindSwitch("related_code"),
  "proactive.enable_warnings": kindSwitch("warning"),
  "proactive.enable_conversations": kindSwitch("conversation"),
  "rerank.url": {
    currentName: "search.rerank",
    formerDefinition: setting(text(), { check: checkServerUrl }),
    convert: (address, soFar) => (soFar === "off" ? "off" : String(address ?? "off")),
  },
  "search.rerank": {
    currentName: "search.rerank",
    formerDefinition: setting(flag(), { default: false, narrowest: false }),
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

function kindSwitch(kind: ItemKind): OldSetting {
  return {
    currentName: "proactive.off",
    formerDefinition: setting(flag(), { default: true, narrowest: false }),
    convert: (on, soFar) =>
      on === false ? kindsIn(soFar, kind) : kindsIn(...splitNames(soFar).filter((name) => name !== kind)),
  }
}

/**
 * Describes a former setting that named the environment variable with a key. Its value replaces all variables in the new list,
 * but not the files.
 */
function keyVariable(currentName: SettingName): OldSetting {
  return {
    currentName,
    formerDefinition: setting(text(), { check: checkVariableName }),
    convert: (variable, soFar) => joinNames(variable ?? "", ...splitNames(soFar).filter((place) => !isVariable(place))),
  }
}

/** Describes a former setting that named the file with a key. Its value replaces all files in the new list, but no variables. */
function keyFile(currentName: SettingName): OldSetting {
  return {
    currentName,
    formerDefinition: setting(text(), {
      check: (path) => (path.includes(",") ? "must not contain a comma" : checkFullPath(path)),
    }),
    convert: (path, soFar) => joinNames(...splitNames(soFar).filter(isVariable), path ?? ""),
  }
}

function joinNames(...names: SettingValue[]): string {
  return names.filter((name) => name !== "").join(",")
}

/** Joins lists of kinds into one list without duplicates. Returns `none` if it is empty. */
function kindsIn(...lists: SettingValue[]): string {
  const names = new Set(lists.flatMap((list) => splitNames(String(list))))
  names.delete("none")
  return names.size === 0 ? "none" : [...names].join(",")
}

/** A source of settings: a file, the environment or the command line. */
type SettingSource = {
  origin: SettingOrigin
  given: [name: string, value: unknown][]
  /** Returns the name of the source for messages about a value. */
  nameOf: (name: string) => string
  read: (name: string, setting: Setting<unknown>, value: unknown) => ReadSetting
}

/**
 * Combines the defaults, the user's file, the project's file, the environment and the flags. Later sources take precedence, but
 * the project's file can only narrow settings. Never throws.
 */
export function loadSettings({ file, env, project, flags = {} }: LoadOptions): LoadedSettings {
  const problems: string[] = []
  const renamed: string[] = []
  const values: Record<string, SettingValue | undefined> = {}
  const origins: Record<string, SettingOrigin> = {}
  let address: string | undefined
  const setValue = (name: SettingName, value: SettingValue, origin: SettingOrigin) => {
    values[name] = value
    origins[name] = origin
  }
  const applySource = ({ origin, given, nameOf, read }: SettingSource) => {
    const setNames = new Set<string>()
    const oldValues: [name: string, OldSetting, value: SettingValue][] = []
    const reportIgnored = (name: string, wrong: string) => problems.push(`${nameOf(name)}: ${wrong}. It was ignored.`)
    for (const [name, value] of given) {
      const oldDefinition = oldSetting(name)
      const oldResult = oldDefinition && read(name, oldDefinition.formerDefinition, value)
      if (oldResult && "ok" in oldResult) oldValues.push([name, oldDefinition, oldResult.ok])
      else if (isSetting(name)) {
        const result = read(name, SETTINGS[name], value)
        if ("wrong" in result) reportIgnored(name, result.wrong)
        else {
          const soFar = origin === "project" ? values[name]! : ""
          setValue(name, SETTINGS[name].isExtendable ? kindsIn(soFar, result.ok) : result.ok, origin)
          setNames.add(name)
          if (name === "search.rerank" && result.ok !== "off") address = String(result.ok)
        }
      } else reportIgnored(name, oldResult?.wrong ?? `there is no setting ${printable(name)}`)
    }
    // Sort them as in OLD_SETTINGS, so that the address of the reranking server is known when its former switch is converted.
    const order = Object.keys(OLD_SETTINGS)
    oldValues.sort(([a], [b]) => order.indexOf(a) - order.indexOf(b))
    for (const [name, { currentName, convert }, value] of oldValues) {
      if (setNames.has(currentName)) {
        reportIgnored(name, `${name} is called ${currentName} now, which is set here too`)
        continue
      }
      if (name === "rerank.url") address = String(value)
      const converted = convert(value, String(values[currentName]), address)
      if (converted !== values[currentName]) setValue(currentName, converted, origin)
      if (name !== currentName) renamed.push(`${nameOf(name)}: ${name} is called ${currentName} now. It still works.`)
    }
  }
  for (const name of SETTING_NAMES) {
    values[name] = SETTINGS[name].default
    origins[name] = "default"
  }
  const userSettings = Object.entries(readObject(file, problems))
  applySource({ origin: "config", given: userSettings, nameOf: () => file, read: readSetting })
  if (project !== undefined) {
    const path = join(project, PROJECT_FILE)
    // The list of documents is read only on request, and only after a question (tools/docs/listed.ts).
    const given = Object.entries(readObject(path, problems)).filter(([name]) => name !== DOCUMENTS_KEY)
    applySource({ origin: "project", given, nameOf: () => path, read: readProjectSetting })
  }
  applySource({
    origin: "environment",
    given: environmentSettings(env, problems),
    nameOf: variableOf,
    read: readVariable,
  })
  applySource({ origin: "flag", given: Object.entries(flags), nameOf: (name) => name, read: readSetting })
  if (values["search.rerank"] === "on") {
    problems.push("search.rerank is on, but no server is set. Set one: dex config set search.rerank http://…")
    values["search.rerank"] = "off"
  }
  problems.push(...misspeltVariables(env))
  return { settings: values as Settings, origins: origins as Record<SettingName, SettingOrigin>, problems, renamed }
}

function environmentSettings(env: LoadOptions["env"], problems: string[]): [name: string, value: unknown][] {
  return [...new Set([...SETTING_NAMES, ...Object.keys(OLD_SETTINGS)])].flatMap((name) => {
    const value = env[variableOf(name)]
    if (!value) return []
    if (!isSetting(name) || !SETTINGS[name].isUserOnly) return [[name, value]]
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
  const { narrowest, isExtendable } = setting
  if (isExtendable) return readSetting(name, setting, value)
  if (narrowest === undefined)
    return { wrong: `${name} cannot be set by a project. Set it for yourself with \`dex config set\`` }
  return value === narrowest ? { ok: narrowest } : { wrong: `${name} may only be ${narrowest} in a project's file` }
}

/** Returns messages about variables that look like settings but are not. Variables that contain API keys are exempt. */
function misspeltVariables(env: LoadOptions["env"]): string[] {
  const knownVariables = new Set([
    ...[...SETTING_NAMES, ...Object.keys(OLD_SETTINGS)].map(variableOf),
    "DEX_EMBED_API_KEY",
    "DEX_RERANK_API_KEY",
    "DEX_LLM_API_KEY",
  ])
  return Object.keys(env)
    .filter(
      (name) => /^DEX_(DELIVER|EMBED|HUB|SEARCH|RERANK|LLM|PROACTIVE|SOURCES)_/.test(name) && !knownVariables.has(name),
    )
    .map((name) => `${printable(name)}: there is no such setting. \`dex config list\` shows all settings.`)
}

/** Reads a settings file. Returns an empty object if there is no such file. */
export function readObject(path: string, problems: string[]): Record<string, unknown> {
  const reportIgnored = (what: string) => {
    problems.push(`${path}: ${what} The file was ignored.`)
    return {}
  }
  let text: string
  try {
    const file = openFile(path)
    try {
      if (process.platform !== "win32" && file.stat.mode & 0o002)
        return reportIgnored(`All users can write to this file. Run: chmod 600 ${path}.`)
      text = readOpened(file, MAX_FILE_BYTES).toString("utf8")
    } finally {
      closeSync(file.fd)
    }
  } catch (error) {
    if (isAbsent(error)) return {}
    return reportIgnored(
      error instanceof RefusedFile
        ? `This file is ${error.message}.`
        : `This file cannot be read (${messageOf(error)}).`,
    )
  }
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // damaged JSON is reported below, like JSON that is not an object
  }
  return reportIgnored("This file is not a JSON object.")
}

function printable(name: string): string {
  return JSON.stringify(name.slice(0, 60))
}
