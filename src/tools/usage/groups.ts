import { localDay, localMinute } from "../../core/dates.ts"
import { formatRef, refFrom } from "../../core/ref.ts"
import type { KnownMade, Spender } from "../../store/spending/spent.ts"
import { fiveHourBlocks, localMonth, localWeek } from "../../usage/periods.ts"
import type { Payment } from "../../usage/sums.ts"
import { attributeSpending } from "../../usage/sums.ts"
import type { UsageGroup } from "./usage.ts"

/** The conversation that spent the tokens, and the root conversation that started it (the same one if nothing did). */
export type SpenderFacts = { own: Spender; root: Spender; isPrivate: boolean }
export type SpenderPayment = Payment<SpenderFacts>

export type Grouping = {
  keyOf(paid: SpenderPayment): string
  titleOf?(key: string): string | undefined
  /** True if the groups are periods, which are shown in time order. */
  isPeriod: boolean
}

const PRIVATE = "(private projects)"
const UNDATED = "(no date)"

/** Builds the grouping of payments. Names, commits and pull requests of private projects are hidden. */
export function groupingBy(
  by: UsageGroup,
  paid: SpenderPayment[],
  made: KnownMade[],
  rootOf: (id: number) => number,
  separateSubagents: boolean,
): Grouping {
  const unlessPrivate =
    (keyOf: (paid: SpenderPayment) => string | undefined, otherwise: string) => (one: SpenderPayment) =>
      one.who.isPrivate ? PRIVATE : (keyOf(one) ?? otherwise)
  switch (by) {
    case "day":
      return period(localDay)
    case "week":
      return period(localWeek)
    case "month":
      return period(localMonth)
    case "block":
      return blocks(paid)
    case "agent":
      return { keyOf: ({ who }) => who.own.source, isPeriod: false }
    case "model":
      return { keyOf: ({ model }) => model ?? "(model not recorded)", isPeriod: false }
    case "project":
      return { keyOf: unlessPrivate(({ who }) => who.own.project, "(no project)"), isPeriod: false }
    case "branch":
      return {
        keyOf: unlessPrivate(branchOf, "(no branch)"),
        isPeriod: false,
      }
    case "conversation":
      return conversations(paid, unlessPrivate, separateSubagents)
    default:
      return groupByMade(by, paid, made, rootOf, unlessPrivate)
  }
}

/** Includes the project's name, because every project has its own main. */
function branchOf({ who }: SpenderPayment): string | undefined {
  const branch = who.own.branch ?? who.root.branch
  return branch === undefined || who.own.project === undefined ? branch : `${who.own.project} ${branch}`
}

function period(nameOf: (at: number) => string): Grouping {
  return { keyOf: ({ at }) => (at === 0 ? UNDATED : nameOf(at)), isPeriod: true }
}

function blocks(paid: SpenderPayment[]): Grouping {
  const starts = fiveHourBlocks(paid.map(({ at }) => at))
  return { keyOf: ({ at }) => (at === 0 ? UNDATED : localMinute(starts.get(at)!)), isPeriod: true }
}

type Hiding = (
  keyOf: (paid: SpenderPayment) => string | undefined,
  otherwise: string,
) => (paid: SpenderPayment) => string

function conversations(paid: SpenderPayment[], unlessPrivate: Hiding, separateSubagents: boolean): Grouping {
  const which = ({ who }: SpenderPayment) => (separateSubagents ? who.own : who.root)
  const refOf = ({ source, native_id }: Spender) => formatRef(refFrom(source, native_id))
  const titles = new Map(paid.map((one) => [refOf(which(one)), which(one).title]))
  return {
    keyOf: unlessPrivate((one) => refOf(which(one)), ""),
    titleOf: (key) => titles.get(key),
    isPeriod: false,
  }
}

/** Groups by commit or pull request: payments belong to the conversation that made it, or to one of its subagents. */
function groupByMade(
  by: "commit" | "pull_request",
  paid: SpenderPayment[],
  made: KnownMade[],
  rootOf: (id: number) => number,
  unlessPrivate: Hiding,
): Grouping {
  const rows = paid.map((one) => ({ one, conversation: one.who.root.id, at: one.at }))
  const origins = made.map(({ name, conversation, at }) => ({ name, conversation: rootOf(conversation), at }))
  const names = attributeSpending(rows, origins, { afterwards: by === "pull_request" })
  const nameOf = new Map(rows.map((row) => [row.one, names.get(row)]))
  const titles = new Map(made.map(({ name, subject }) => [name, subject]))
  return {
    keyOf: unlessPrivate((one) => nameOf.get(one), by === "commit" ? "(not committed)" : "(no pull request)"),
    titleOf: (key) => titles.get(key),
    isPeriod: false,
  }
}
