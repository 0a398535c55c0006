import { closeSync } from "node:fs"
import { join } from "node:path"
import { messageOf } from "../core/error.ts"
import { isAbsent } from "../core/look-at.ts"
import { openFile, RefusedFile, readOpened } from "../core/read-file.ts"
import {
  isSetting,
  readTextValue,
  readValue,
  SETTING_NAMES,
  SETTINGS,
  type SettingName,
  type Settings,
  type SettingValue,
  variableOf,
} from "./settings.ts"

/** Where a value comes from, weakest first. */
export type SettingOrigin = "default" | "config" | "project" | "environment" | "flag"

export type Loaded = {
  settings: Settings
  origins: Record<SettingName, SettingOrigin>
  /** Which values were ignored and why, in words for a person. dex works without them. */
  problems: string[]
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

/** defaults < the user's file < the project's file (narrowing only) < environment < flags. Never throws. */
export function loadSettings({ file, env, project, flags = {} }: LoadOptions): Loaded {
  const problems: string[] = []
  const values: Record<string, SettingValue | undefined> = {}
  const origins: Record<string, SettingOrigin> = {}
  const put = (
    name: SettingName,
    read: { ok: SettingValue } | { wrong: string },
    origin: SettingOrigin,
    where: string,
  ) => {
    if ("wrong" in read) return void problems.push(`${where}: ${read.wrong}. It was ignored.`)
    values[name] = read.ok
    origins[name] = origin
  }
  for (const name of SETTING_NAMES) {
    values[name] = SETTINGS[name].default
    origins[name] = "default"
  }
  for (const [name, value] of Object.entries(readObject(file, problems))) {
    if (isSetting(name)) put(name, readValue(name, value), "config", file)
    else problems.push(`${file}: there is no setting ${printable(name)}. It was ignored.`)
  }
  if (project !== undefined) {
    const own = join(project, PROJECT_FILE)
    for (const [name, value] of Object.entries(readObject(own, problems))) {
      const narrowest = isSetting(name) ? SETTINGS[name].narrowest : undefined
      if (isSetting(name) && narrowest !== undefined && value === narrowest)
        put(name, { ok: narrowest }, "project", own)
      else problems.push(`${own}: ${printable(name)} ${whyNot(narrowest)}`)
    }
  }
  for (const name of SETTING_NAMES) {
    const value = env[variableOf(name)]
    if (value && SETTINGS[name].isOwn)
      problems.push(
        `${variableOf(name)}: dex runs what ${name} names, so only your own settings may name it: \`dex config set\`.`,
      )
    else if (value) put(name, readTextValue(name, value), "environment", variableOf(name))
  }
  for (const [name, value] of Object.entries(flags))
    if (isSetting(name) && value !== undefined) put(name, readValue(name, value), "flag", name)
  problems.push(...misspelt(env))
  return { settings: values as Settings, origins: origins as Record<SettingName, SettingOrigin>, problems }
}

/** A cloned repository must not be able to send its user's conversations to its own server. */
function whyNot(narrowest: SettingValue | undefined): string {
  return narrowest === undefined
    ? "cannot be set by a project. Set it for yourself with `dex config set`."
    : `may only be ${narrowest} in a project's file.`
}

/** Variables that look like settings but are not. Variables that contain keys are exempt. */
function misspelt(env: LoadOptions["env"]): string[] {
  const known = new Set([
    ...SETTING_NAMES.map(variableOf),
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
      if (process.platform !== "win32" && file.stat.mode & 0o002) return say("Anybody can write it: chmod 600 it.")
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
