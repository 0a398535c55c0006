import { parseArgs } from "node:util"
import { dexHome, type Home } from "../config/home.ts"
import { readHub, readOperator, writeOperator } from "../config/hub.ts"
import { DexError } from "../core/error.ts"
import { nearestNames } from "../core/nearest.ts"
import { readAs, type Schema } from "../core/schema.ts"
import { type AdminRoute, adminRoutes } from "../hub-client/admin-routes.ts"
import { hubAddress, useHub } from "../hub-client/client.ts"
import { toJson } from "../render/json.ts"
import { safe, safeLine } from "../render/terminal.ts"
import { askForCode } from "./hub-login.ts"

const ROUTES: Record<string, AdminRoute> = adminRoutes
const NOTHING_CHANGED = "Nothing was changed."
const BREAK_GLASS = "break-glass"

/** `dex hub admin …`: the commands of operators and admins of a hub. Each command is one route of the hub. */
export async function hubAdminCommand(words: string[]): Promise<number> {
  process.stdout.write(
    await hubAdmin(dexHome(process.env), words, () => askForCode("Your one-time code (it is not shown)")),
  )
  return 0
}

/** Returns what the command prints. `askCode` reads a one-time code from the person. */
export async function hubAdmin(
  home: Pick<Home, "dir">,
  words: string[],
  askCode: () => Promise<string>,
): Promise<string> {
  if (words.length === 0 || words.some((word) => word === "--help" || word === "-h" || word === "help")) return help()
  if (words[0] === "login") return logIn(home, words.slice(1), askCode)
  if (words[0] === "logout") {
    writeOperator(home, {})
    return "You are no longer logged in as an operator on this machine.\n"
  }
  if (words[0] === BREAK_GLASS) return breakGlass(home, words.slice(1))
  const name = [words.slice(0, 2).join(" "), words[0]!].find((one) => Object.hasOwn(ROUTES, one))
  if (name === undefined) throw unknownCommand(words)
  const route = ROUTES[name]!
  const { input, json } = inputOf(name, route, words.slice(name.split(" ").length))
  const account = route.who === "operator" ? operatorOf(home) : memberOf(home)
  const output = await useHub({ ...account, consequence: NOTHING_CHANGED }, (hub) =>
    hub.administer(route.method, ...requestOf(route, input)),
  )
  if (json) return `${toJson(output as object)}\n`
  return safe(route.done ? `${route.done(input, output)}\n` : linesOf(output as object))
}

async function logIn(home: Pick<Home, "dir">, [typed, ...more]: string[], askCode: () => Promise<string>) {
  if (typed === undefined || more.length > 0)
    throw new DexError("usage", "Which hub? For example: dex hub admin login https://hub.example.com")
  const address = hubAddress(typed)
  const code = await askCode()
  const { token, name } = await useHub({ address, maxTries: 2, consequence: NOTHING_CHANGED }, (hub) =>
    hub.redeemOperatorCode(code),
  )
  writeOperator(home, { address, token, name })
  return `Logged in to ${safeLine(address)} as the operator ${safeLine(String(name))}.\n`
}

async function breakGlass(home: Pick<Home, "dir">, words: string[]): Promise<string> {
  const options = { reason: { type: "string" as const }, hours: { type: "string" as const } }
  const { positionals, values } = parsed(words, options)
  const [ref, ...more] = positionals
  const hours = values.hours === undefined ? undefined : Number(values.hours)
  if (ref === undefined || more.length > 0 || typeof values.reason !== "string" || Number.isNaN(hours))
    throw new DexError(
      "usage",
      'Which conversation, and why? For example: dex hub admin break-glass ann/claude_code:1f3c --reason "incident 42" --hours 2',
    )
  const { reason } = values
  const opened = await useHub({ ...memberOf(home), consequence: NOTHING_CHANGED }, (hub) =>
    hub.breakGlass({ ref, reason, hours }),
  )
  return safe(`You can read ${opened.ref} until ${opened.until}. Its author is notified.\n`)
}

function operatorOf(home: Pick<Home, "dir">): { address: string; token: string } {
  const { address, token } = readOperator(home)
  if (address !== undefined && token !== undefined) return { address, token }
  throw new DexError("usage", "This needs an operator. Log in with a one-time code: dex hub admin login ADDRESS")
}

function memberOf(home: Pick<Home, "dir">): { address: string; token: string } {
  const { address, token } = readHub(home)
  if (address !== undefined && token !== undefined) return { address, token }
  throw new DexError("usage", "This needs an admin of a tenant. Log in: dex hub login ADDRESS")
}

/** The route's input from words and options. */
function inputOf(name: string, route: AdminRoute, words: string[]): { input: object; json: boolean } {
  const fields = Object.entries(route.input.properties ?? {})
  const optionFields = fields.filter(([field]) => !route.words.includes(field))
  const options = Object.fromEntries(
    optionFields.map(([field, { type }]) => [
      field,
      { type: type === "boolean" ? ("boolean" as const) : ("string" as const) },
    ]),
  )
  const { positionals, values } = parsed(words, options)
  if (positionals.length !== route.words.length) throw usageError(name, route)
  const typed: Record<string, unknown> = { ...values }
  delete typed.json
  for (const [i, field] of route.words.entries()) typed[field] = positionals[i]
  for (const [field, { type }] of fields)
    if (type === "integer" && /^\d{1,15}$/.test(String(typed[field]))) typed[field] = Number(typed[field])
  const read = readAs(route.input as Schema<object>, typed)
  if ("wrong" in read) throw new DexError("usage", `${read.wrong}. ${usageLine(name, route)}`)
  return { input: read.ok, json: values.json === true }
}

type Options = Record<string, { type: "string" | "boolean" }>

function parsed(args: string[], options: Options): { positionals: string[]; values: Record<string, unknown> } {
  try {
    return parseArgs({ args, options: { ...options, json: { type: "boolean" as const } }, allowPositionals: true })
  } catch (error) {
    throw new DexError("usage", `${(error as Error).message}. See: dex hub admin --help`, { cause: error })
  }
}

/** The path with its fields, and the body with the others. */
function requestOf({ method, path }: AdminRoute, input: object): [path: string, body?: object] {
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined))
  const filled = path.replaceAll(/:(\w+)/g, (_, field: string) => {
    const value = rest.get(field)
    rest.delete(field)
    return encodeURIComponent(String(value).toWellFormed())
  })
  if (method !== "GET") return rest.size === 0 ? [filled] : [filled, Object.fromEntries(rest)]
  const query = new URLSearchParams(
    [...rest].map(([field, value]): [string, string] => [field, String(value)]),
  ).toString()
  return [query === "" ? filled : `${filled}?${query}`]
}

/** One JSON object per line. */
function linesOf(output: object): string {
  const list = Object.values(output).find(Array.isArray) as object[] | undefined
  return (list ?? []).map((one) => `${JSON.stringify(one)}\n`).join("")
}

function usageError(name: string, route: AdminRoute): DexError {
  return new DexError("usage", usageLine(name, route))
}

function usageLine(name: string, route: AdminRoute): string {
  return `Usage: ${commandLine(name, route)}`
}

function commandLine(name: string, { words, input }: AdminRoute): string {
  const options = Object.entries(input.properties ?? {})
    .filter(([field]) => !words.includes(field))
    .map(([field, { type, enum: values }]) => {
      if (type === "boolean") return `[--${field}]`
      return `[--${field} ${values?.join("|") ?? String(field).toUpperCase()}]`
    })
  const typed = words.map((field) => input.properties?.[field]?.enum?.join("|") ?? String(field).toUpperCase())
  return ["dex hub admin", name, ...typed, ...options].join(" ")
}

function unknownCommand(words: string[]): DexError {
  const [suggestion] = nearestNames(words.slice(0, 2).join(" "), Object.keys(ROUTES))
  const hint = suggestion === undefined ? "See: dex hub admin --help" : `Did you mean \`dex hub admin ${suggestion}\`?`
  return new DexError("usage", `There is no command dex hub admin ${words.slice(0, 2).join(" ")}. ${hint}`)
}

function help(): string {
  const listOf = (...roles: string[]) =>
    Object.entries(ROUTES)
      .filter(([, { who }]) => roles.includes(who))
      .map(([name, route]) => `  ${commandLine(name, route)}\n      ${route.summary}\n`)
      .join("")
  return `dex hub admin: administer a hub. --json prints the hub's answer.

Operators, who log in with a one-time code (dex-hub init prints the first one):
  dex hub admin login ADDRESS
      Log in as an operator; dex hub admin logout deletes the token here
${listOf("operator")}
Admins of a tenant, who log in with dex hub login (auditors can use audit and glass list):
${listOf("admin", "auditor")}  dex hub admin break-glass REF --reason TEXT [--hours N]
      Read one conversation for up to 24 hours; its author is notified
`
}
