import { parseArgs } from "node:util"
import { DATE_EXAMPLES } from "../core/dates.ts"
import { DexError } from "../core/error.ts"
import { nearestNames } from "../core/nearest.ts"
import { flag, readAs, type Schema } from "../core/schema.ts"
import type { Tool } from "../core/tool.ts"

/**
 * A tool's flag as a person types it: `--max-tokens` for `max_tokens`, and `--before` for `expand.before`. A flag with a
 * `choice` sets its field to that value.
 */
export type Flag = { name: string; path: string[]; schema: Schema; shorts: string[]; choice?: string }

/** The short options of fields that many tools have. A tool can give the letter to another field. */
const SHORT_OPTIONS: Record<string, string> = { n: "limit" }

export function flagsOf(tool: Pick<Tool<never>, "input" | "cli">): Flag[] {
  const nested = Object.entries(tool.cli.nested ?? {}).map(([name, path]) => flagAt(tool, name, path.split(".")))
  const choosing = Object.entries(tool.cli.choosing ?? {}).map(([choice, field]) => choosingFlag(tool, choice, field))
  const plain = Object.entries(tool.input.properties ?? {})
    .filter(([name, schema]) => name !== tool.cli.positional && schema.type !== "object")
    .filter(([name]) => ![...nested, ...choosing].some(({ path }) => path.length === 1 && path[0] === name))
    .map(([name]) => flagAt(tool, name.replaceAll("_", "-"), [name]))
  return [...plain, ...choosing, ...nested]
}

function choosingFlag(tool: Pick<Tool<never>, "input">, choice: string, field: string): Flag {
  const { description } = tool.input.properties![field]!
  return { name: choice, path: [field], schema: flag(description), shorts: [], choice }
}

function flagAt(tool: Pick<Tool<never>, "input" | "cli">, name: string, path: string[]): Flag {
  const schema = path.reduce<Schema>((parent, key) => parent.properties![key]!, tool.input)
  const letters = Object.entries({ ...SHORT_OPTIONS, ...tool.cli.short })
  const shorts = letters.filter(([, field]) => field === path[0]).map(([letter]) => letter)
  return { name, path, schema, shorts }
}

/** A parsed command line: the tool's input, and the options that are not part of it. */
export type ParsedCommandLine = {
  input: unknown
  json: boolean
  help: boolean
  pager: boolean
  /** True if a page in the browser should show the output. */
  web: boolean
  /** True if the person gave a limit. */
  hasLimit: boolean
}

/** Parses the command line according to the tool's schema. Throws a DexError that says what is wrong and what to type. */
export function readArguments(tool: Tool<never>, argv: string[]): ParsedCommandLine {
  const flags = flagsOf(tool)
  const options = optionsOf(tool, flags)
  const { values, positionals } = parseCommandLine(tool, argv, options)
  const input: Record<string, unknown> = {}
  for (const flag of flags) {
    const value = [...namesOf(flag), ...formerNames(tool, flag)]
      .map((name) => values[name])
      .find((option) => option !== undefined)
    if (value !== undefined) setField(input, flag.path, flag.choice ?? convertValue(flag, value))
  }
  takePositionals(tool, positionals, input)
  const help = values.help === true
  const pager = values["no-pager"] !== true
  const web = values.web === true
  const hasLimit = input.limit !== undefined
  if (help) return { input, json: false, help, pager, web, hasLimit }
  const result = readAs(tool.input, input)
  if ("wrong" in result)
    throw new DexError("usage", `${describeFieldError(tool, result.wrong, input)}. See: dex ${tool.name} --help`)
  return { input: result.ok, json: values.json === true, help, pager, web, hasLimit }
}

/** The options that choose the pager or the browser. They are in no tool's input. */
export function screenOptions({ cli }: Pick<Tool<never>, "cli">): [name: string, description: string][] {
  return [
    ...(cli.paged ? [["no-pager", "Print directly, not through $PAGER."] as [string, string]] : []),
    ...(cli.web ? [["web", "Open the page in the browser, as dex view does."] as [string, string]] : []),
  ]
}

/** True if the command line contains arguments that are not options, or asks for help. */
export function hasArgumentsOrHelp(tool: Tool<never>, argv: string[]): boolean {
  const options = optionsOf(tool, flagsOf(tool))
  const { values, positionals } = parseArgs({ args: textLast(argv), options, allowPositionals: true, strict: false })
  return positionals.length > 0 || values.help === true
}

function optionsOf(tool: Tool<never>, flags: readonly Flag[]): ParserOptions {
  const options: ParserOptions = {
    json: { type: "boolean", short: "j" },
    help: { type: "boolean", short: "h" },
    ...Object.fromEntries(screenOptions(tool).map(([name]) => [name, { type: "boolean" }] as const)),
  }
  for (const flag of flags) {
    const kind = {
      type: flag.schema.type === "boolean" ? ("boolean" as const) : ("string" as const),
      ...(flag.schema.type === "array" && { multiple: true }),
    }
    for (const [i, name] of namesOf(flag).entries())
      options[name] = { ...kind, ...(flag.shorts[i] !== undefined && { short: flag.shorts[i] }) }
    for (const name of formerNames(tool, flag)) options[name] = { ...kind, isFormer: true }
  }
  return options
}

/** The names that the option had in earlier versions. They are accepted, but no help lists them. */
function formerNames({ renamed = {} }: Pick<Tool<never>, "renamed">, { path }: Flag): string[] {
  return Object.entries(renamed)
    .filter(([, now]) => path.length === 1 && path[0] === now)
    .map(([old]) => old.replaceAll("_", "-"))
}

/**
 * The names of a flag for Node's parser. Node allows one letter per option, so each further letter gets an internal option that
 * nobody can type.
 */
function namesOf({ name, shorts }: Flag): string[] {
  return [name, ...shorts.slice(1).map((letter) => `${name}=${letter}`)]
}

type ParserOptions = Record<string, { type: "string" | "boolean"; short?: string; multiple?: boolean; isFormer?: true }>

/** Moves quoted text that begins with a dash, such as `--- FAIL: TestX`, behind `--`. The name of an option has no space. */
function textLast(argv: string[]): string[] {
  const isText = (argument: string) => /^-[^=]*\s/.test(argument)
  const end = argv.includes("--") ? argv.indexOf("--") : argv.length
  const options = argv.slice(0, end)
  if (!options.some(isText)) return argv
  return [...options.filter((one) => !isText(one)), "--", ...options.filter(isText), ...argv.slice(end + 1)]
}

function parseCommandLine(tool: Tool<never>, argv: string[], options: ParserOptions) {
  try {
    return parseArgs({ args: textLast(argv), options, allowPositionals: true, strict: true })
  } catch (error) {
    throw usageError(tool.name, error as Error, argv, options)
  }
}

/** Turns Node's parse error into one sentence with a hint. */
export function usageError(command: string, error: Error, argv: readonly string[], options: ParserOptions): DexError {
  const helpHint = `See: dex ${command} --help`
  const unknownOption = /^Unknown option '(-[^' ]+)/.exec(error.message)?.[1]
  if (unknownOption === undefined)
    return new DexError("usage", `${describeParseError(error, argv)}. ${helpHint}`, { cause: error })
  const names = Object.keys(options).filter((name) => !name.includes("=") && !options[name]!.isFormer)
  const suggestion = unknownOption.startsWith("--") ? suggestOption(unknownOption.slice(2), names) : undefined
  const datesHint = unknownOption.slice(2) in OPTION_SYNONYMS ? ` It takes ${DATE_EXAMPLES}.` : ""
  const hint = suggestion === undefined ? helpHint : `Did you mean --${suggestion}?${datesHint}`
  return new DexError("usage", `dex ${command} has no option ${unknownOption}. ${hint}`, { cause: error })
}

/** Other programs' names for the options `--from` and `--to`. */
const OPTION_SYNONYMS: Record<string, string> = { after: "from", since: "from", before: "to", until: "to" }

function suggestOption(typedName: string, names: readonly string[]): string | undefined {
  const option = OPTION_SYNONYMS[typedName]
  return option !== undefined && names.includes(option) ? option : closestName(typedName, names)
}

function describeParseError({ message }: Error, argv: readonly string[]): string {
  const [, typed, flag] = /^Option '([^']+)' argument is ambiguous.*use '(--[^=]+)=/s.exec(message) ?? []
  if (typed === undefined)
    return message
      .split(/\.\s/)[0]!
      .replace(/\.$/, "")
      .replace(/(--[\w-]+)=\w\b/, "$1")
  const value = argv[argv.indexOf(typed) + 1]
  return `${flag} needs a value. If the value begins with a dash, write ${flag}=${value}`
}

function convertValue(flag: Flag, value: string | boolean | (string | boolean)[]): unknown {
  // An option can be repeated, or have several values separated by commas.
  if (Array.isArray(value)) return value.flatMap((item) => String(item).split(",").filter(Boolean))
  const isInteger = flag.schema.type === "integer"
  if (!isInteger && flag.schema.type !== "number") return value
  const number = Number(value)
  if (value === "" || !(isInteger ? Number.isInteger(number) : Number.isFinite(number)))
    throw new DexError("usage", `--${flag.name} needs a ${isInteger ? "whole " : ""}number, not "${value}".`)
  return number
}

function setField(target: Record<string, unknown>, path: string[], value: unknown): void {
  const [first, ...rest] = path
  if (rest.length === 0) target[first!] = value
  else {
    target[first!] ??= {}
    setField(target[first!] as Record<string, unknown>, rest, value)
  }
}

function takePositionals(tool: Tool<never>, words: string[], input: Record<string, unknown>): void {
  const field = tool.cli.positional
  if (field === undefined) {
    if (words.length > 0)
      throw new DexError(
        "usage",
        `dex ${tool.name} does not take the argument "${words[0]}". See: dex ${tool.name} --help`,
      )
    return
  }
  const schema = tool.input.properties![field]!
  if (schema.type === "array") input[field] = words
  else if (tool.cli.rest !== undefined) {
    const [first, ...rest] = words
    if (first !== undefined) input[field] = first
    if (rest.length > 0) input[tool.cli.rest] = rest.join(",")
  } else if (words.length > 0) input[field] = words.join(" ")
}

function describeFieldError(tool: Tool<never>, wrong: string, input: Record<string, unknown>): string {
  const [, path = "", complaint = wrong] = /^([a-z_.]+)(?:\[\d+\])? (.*)$/s.exec(wrong) ?? []
  if (path === tool.cli.positional && complaint === "is missing")
    return `dex ${tool.name} needs more arguments. For example: ${tool.cli.example}`
  const flags = flagsOf(tool)
  const field = flags.find((flag) => flag.path.join(".") === path)
  if (complaint === "is missing" && field) {
    const givenFlag = flags.find(
      (flag) => flag !== field && flag.path[0] === field.path[0] && valueAt(input, flag.path),
    )
    if (givenFlag) return `--${givenFlag.name} needs --${field.name} as well`
  }
  if (path === tool.cli.positional || path === tool.cli.rest) return `<${singularName(tool, path)}> ${complaint}`
  return field ? `--${field.name} ${complaint}` : wrong
}

/** The name of a positional field as help shows it. For an array it is in the singular: `pattern` for `patterns`. */
export function singularName(tool: Pick<Tool<never>, "input">, field: string): string {
  return tool.input.properties![field]!.type === "array" ? field.replace(/s$/, "") : field
}

function valueAt(input: unknown, path: string[]): unknown {
  return path.reduce<unknown>((parent, key) => (parent as Record<string, unknown> | undefined)?.[key], input)
}

const MIN_PREFIX_LENGTH = 3

/** The name that a person probably meant: the most similar one; if none is similar, one that extends the word or shortens it. */
export function closestName(word: string, names: readonly string[]): string | undefined {
  const beginsWith = (longer: string, shorter: string) =>
    shorter.length >= MIN_PREFIX_LENGTH && longer.startsWith(shorter.toLowerCase())
  return (
    nearestNames(word, names, 1)[0] ??
    names.find((name) => beginsWith(name, word) || beginsWith(word.toLowerCase(), name))
  )
}
