import { byName } from "../../core/by-name.ts"
import type { Schema } from "../../core/schema.ts"
import type { OfferedTool } from "./definitions.ts"

/** A call as an agent makes it: `dex_get {"ids":["…"]}`. */
export function formatCall(name: string, input: object): string {
  return `${name} ${JSON.stringify(input)}`
}

/**
 * The call for a command line that a tool printed. If agents have no such tool, tells them to run the command line in a shell.
 */
export function callForCommand(commandLine: string, offered: readonly OfferedTool[]): string {
  return callFor(commandLine, offered) ?? `in a shell: ${commandLine}`
}

/** The call for a command line. Undefined if agents have no such tool, or if the tool hides one of the fields from them. */
function callFor(commandLine: string, offered: readonly OfferedTool[]): string | undefined {
  const [, name, ...args] = shellWords(commandLine)
  const { tool, words } = findForm(name, args, offered) ?? { tool: toolNamed(name, offered), words: args }
  if (!tool) return undefined
  const input: Record<string, unknown> = {}
  const positionals: string[] = []
  for (let i = 0; i < words.length; i++) {
    const flag = /^--(.+)$/.exec(words[i]!)?.[1]
    if (flag === undefined) {
      positionals.push(words[i]!)
      continue
    }
    const path = (byName(tool.cli.nested ?? {}, flag) ?? flag.replaceAll("-", "_")).split(".")
    const schema = path.reduce<Schema | undefined>((parent, key) => byName(parent?.properties ?? {}, key), tool.input)
    if (!schema) return undefined
    setArgument(input, path, schema.type === "boolean" ? true : readWord(schema, words[++i] ?? ""))
  }
  const { positional: field, rest } = tool.cli
  if (field !== undefined && positionals.length > 0) {
    if (tool.input.properties?.[field]?.type === "array") input[field] = positionals
    else input[field] = rest === undefined ? positionals.join(" ") : positionals.shift()
    if (rest !== undefined && positionals.length > 0) input[rest] = positionals.join(",")
  }
  const isOffered = (name: string) => byName(tool.input.properties ?? {}, name) && !tool.mcp.omit?.includes(name)
  return Object.keys(input).every(isOffered) ? formatCall(tool.mcp.name, input) : undefined
}

/** Some options and words of a command have a tool of their own. Returns that tool and the remaining words. */
function findForm(name: string | undefined, words: string[], offered: readonly OfferedTool[]) {
  for (const tool of offered) {
    const { command, option, word } = tool.cli.formOf ?? {}
    const index = words.indexOf(option === undefined ? (word ?? "") : `--${option}`)
    if (command !== undefined && command === name && index >= 0) return { tool, words: words.toSpliced(index, 1) }
  }
  return undefined
}

function toolNamed(name: string | undefined, offered: readonly OfferedTool[]): OfferedTool | undefined {
  return offered.find((one) => one.name === name || one.cli.aliases?.includes(name ?? ""))
}

// Matches an option, or a command line up to its backtick or to a word that cannot be an argument. Arguments look like '…',
// <id>, used|dismissed or --flag.
const COMMANDS =
  /`(dex [a-z]+(?: [^`]*)?)`|\b(dex [a-z]+\b(?! ?_)(?: (?:'[^']*'|<[\w-]+>|\w+(?:\|\w+)+|--[a-z-]+))*)|--([a-z]+(?:-[a-z]+)*)/g

/**
 * Adapts a text that was written for people: replaces commands and options with an agent's calls and fields. Commands without a
 * tool stay as they are.
 */
export function commandsToCalls(text: string, offered: readonly OfferedTool[]): string {
  return text.replace(COMMANDS, (match, quoted?: string, bare?: string, flag?: string) => {
    if (flag !== undefined) return flag.replaceAll("-", "_")
    const line = (quoted ?? bare)!
    const [, name, first] = line.split(" ")
    const replacement = first === undefined ? toolNamed(name, offered)?.mcp.name : callFor(line, offered)
    if (replacement === undefined) return match
    return quoted === undefined ? replacement : `\`${replacement}\``
  })
}

function readWord(schema: Schema | undefined, word: string): unknown {
  if (schema?.type === "integer" || schema?.type === "number") return Number(word)
  return schema?.type === "array" ? word.split(",") : word
}

function setArgument(target: Record<string, unknown>, [first, ...rest]: string[], value: unknown): void {
  if (rest.length === 0) target[first!] = value
  else {
    const inner = (target[first!] ?? {}) as Record<string, unknown>
    setArgument(inner, rest, value)
    target[first!] = inner
  }
}

/** Splits a command line that dex printed. A word may be quoted as '…', in which '\'' is a quotation mark. */
function shellWords(line: string): string[] {
  return [...line.matchAll(/(?:'[^']*'|\\'|[^\s'\\]+)+/g)].map(([word]) =>
    word.replace(/'([^']*)'|\\'/g, (_, inside?: string) => inside ?? "'"),
  )
}
