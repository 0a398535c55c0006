import type { Schema } from "../core/schema.ts"
import type { Offered } from "./definitions.ts"

/** A call as an agent makes it: `dex_get {"ids":["…"]}`. */
export function call(name: string, input: object): string {
  return `${name} ${JSON.stringify(input)}`
}

/** A command line that a tool printed, as a call; as it is where agents have no such tool. */
export function callOf(commandLine: string, offered: readonly Offered[]): string {
  const [, name, ...words] = shellWords(commandLine)
  const tool = offered.find((one) => one.name === name)
  if (!tool) return `in a shell: ${commandLine}`
  const input: Record<string, unknown> = {}
  const loose: string[] = []
  for (let i = 0; i < words.length; i++) {
    const flag = /^--(.+)$/.exec(words[i]!)?.[1]
    if (flag === undefined) {
      loose.push(words[i]!)
      continue
    }
    const path = (tool.cli.nested?.[flag] ?? flag.replaceAll("-", "_")).split(".")
    const schema = path.reduce<Schema | undefined>((at, key) => at?.properties?.[key], tool.input)
    put(input, path, schema?.type === "boolean" ? true : readWord(schema, words[++i] ?? ""))
  }
  const field = tool.cli.positional
  if (field !== undefined && loose.length > 0)
    input[field] = tool.input.properties?.[field]?.type === "array" ? loose : loose.join(" ")
  return call(tool.mcp.name, input)
}

/** What tools say to people names commands and flags; agents have calls and fields. */
export function inCalls(text: string, offered: readonly Offered[]): string {
  return text
    .replace(/`?\bdex ([a-z]+)\b(?! ?_)/g, (whole, name: string) => {
      const tool = offered.find((one) => one.name === name || one.cli.aliases?.includes(name))
      return tool ? `${whole.startsWith("`") ? "`" : ""}${tool.mcp.name}` : whole
    })
    .replace(/--([a-z]+(?:-[a-z]+)*)/g, (_, flag: string) => flag.replaceAll("-", "_"))
}

function readWord(schema: Schema | undefined, word: string): unknown {
  if (schema?.type === "integer" || schema?.type === "number") return Number(word)
  return schema?.type === "array" ? word.split(",") : word
}

function put(target: Record<string, unknown>, [first, ...rest]: string[], value: unknown): void {
  if (rest.length === 0) target[first!] = value
  else {
    const inner = (target[first!] ?? {}) as Record<string, unknown>
    put(inner, rest, value)
    target[first!] = inner
  }
}

/** As our own command lines are quoted: words, or '…' with '\'' for a quotation mark. */
function shellWords(line: string): string[] {
  return [...line.matchAll(/(?:'[^']*'|\\'|[^\s'\\]+)+/g)].map(([word]) =>
    word.replace(/'([^']*)'|\\'/g, (_, inside?: string) => inside ?? "'"),
  )
}
