import type { Infer } from "../../../src/core/schema.ts"
import type { AdminCommand, adminRoutes } from "../../../src/hub-client/admin-routes.ts"
import type { Readiness } from "../ready.ts"
import type { Search } from "../search/pool.ts"
import type { Database, Query } from "../store/connection.ts"
import { HubProblem } from "../store/problem.ts"

/** The parts of a running hub that the handlers need. */
export type AdminParts = {
  db: Database
  search: Pick<Search, "state">
  version: string
  ready?: Readiness
  /** The identity provider of the hub's settings. */
  issuer?: string
  /** True if the hub has a cluster for words. */
  hasCluster?: boolean
}

/** A transaction on behalf of the caller. `tenant` is the caller's own; 0 for an operator. */
export type AdminCall<I> = { query: Query; tenant: number; input: I; parts: AdminParts }

export type AdminHandlers<C extends AdminCommand = AdminCommand> = {
  [K in C]: (
    call: AdminCall<Infer<(typeof adminRoutes)[K]["input"]>>,
  ) => Promise<Infer<(typeof adminRoutes)[K]["output"]>>
}

const NAME = /^[a-z0-9][a-z0-9_.-]{0,62}$/
const SLUG = /^[a-z0-9][a-z0-9-]{0,62}$/
const MAX_TEXT = 300
const CONTROL_CHARACTER = /[\p{Cc}\p{Cf}\p{Cs}]/u
const UNITS = { MB: 1e6, GB: 1e9, TB: 1e12 }
const MAX_LINES = 1_000

export function checkedName(name: string): string {
  if (NAME.test(name)) return name
  throw invalid("A name begins with a lower-case letter or digit, and has at most 63 of these, ., _ and -.")
}

export function checkedSlug(name: string): string {
  if (SLUG.test(name)) return name
  throw invalid("A tenant's name begins with a lower-case letter or digit, and has at most 63 of these and -.")
}

/** A text that somebody typed: a project, a group, an address. */
export function checkedText(text: string, what: string): string {
  if (text.trim() !== "" && text.length <= MAX_TEXT && !CONTROL_CHARACTER.test(text)) return text
  throw invalid(`${what} has 1 to ${MAX_TEXT} characters, on one line.`)
}

/** Undefined means no limit. */
export function bytesOf(size: string): number | undefined {
  if (size === "none") return undefined
  const [, number, unit] = /^([0-9]{1,9}(?:\.[0-9]{1,9})?)(MB|GB|TB)$/.exec(size.toUpperCase()) ?? []
  if (number === undefined) throw invalid("Give a size such as 500MB, 50GB or 1TB, or none.")
  const bytes = Math.round(Number(number) * UNITS[unit as keyof typeof UNITS])
  if (Number.isSafeInteger(bytes)) return bytes
  throw invalid("That is too large.")
}

export function checkedLimit(limit = 100): number {
  if (limit >= 1 && limit <= MAX_LINES) return limit
  throw invalid(`limit must be a number from 1 to ${MAX_LINES}.`)
}

export function invalid(message: string): HubProblem {
  return new HubProblem(400, "invalid", message)
}
