import { localDay, localMinute } from "../../core/dates.ts"
import { formatRef, refFrom } from "../../core/ref.ts"
import type { KnownMade, Spender } from "../../store/spending/spent.ts"
import { fiveHourBlocks, localMonth, localWeek } from "../../usage/periods.ts"
import type { Payment } from "../../usage/sums.ts"
import { attributeSpending } from "../../usage/sums.ts"
import { ticketOfBranch, ticketOfSubject } from "../../usage/tickets.ts"
import type { UsageGroup } from "./usage.ts"

/** The conversation that spent the tokens, and the root of its chain of parents. Without a parent, both are the same. */
export type SpenderFacts = { own: Spender; root: Spender; isPrivate: boolean }
export type SpenderPayment = Payment<SpenderFacts>

export type Grouping = {
  keyOf(payment: SpenderPayment): string
  titleOf?(key: string): string | undefined
  /** True if the groups are periods, which are shown in time order. */
  isPeriod: boolean
}

/** The names of the rows of what belongs to no group, by what the payments lack. */
export const UNGROUPED = {
  privateProject: "(private projects)",
  date: "(no date)",
  model: "(model not recorded)",
  project: "(no project)",
  branch: "(no branch)",
  commit: "(not committed)",
  pull_request: "(no pull request)",
  ticket: "(no ticket)",
} as const

const UNGROUPED_NAMES = new Set<string>(Object.values(UNGROUPED))

/** A group may have a name in brackets too, such as a model of the user's own. */
export function isUngrouped(key: string): boolean {
  return UNGROUPED_NAMES.has(key)
}

/** Builds the grouping of payments. Names, commits and pull requests of private projects are hidden. */
export function groupingBy(
  by: UsageGroup,
  payments: SpenderPayment[],
  made: KnownMade[],
  rootOf: (id: number) => number,
  separateSubagents: boolean,
): Grouping {
  const unlessPrivate =
    (keyOf: (payment: SpenderPayment) => string | undefined, fallback: string) => (payment: SpenderPayment) =>
      payment.who.isPrivate ? UNGROUPED.privateProject : (keyOf(payment) ?? fallback)
  switch (by) {
    case "day":
      return groupByPeriod(localDay)
    case "week":
      return groupByPeriod(localWeek)
    case "month":
      return groupByPeriod(localMonth)
    case "block":
      return groupByBlock(payments)
    case "agent":
      return { keyOf: ({ who }) => who.own.source, isPeriod: false }
    case "model":
      return { keyOf: ({ model }) => model ?? UNGROUPED.model, isPeriod: false }
    case "project":
      return { keyOf: unlessPrivate(({ who }) => who.own.project, UNGROUPED.project), isPeriod: false }
    case "branch":
      return {
        keyOf: unlessPrivate(branchOf, UNGROUPED.branch),
        isPeriod: false,
      }
    case "conversation":
      return groupByConversation(payments, unlessPrivate, separateSubagents)
    case "ticket":
      return groupByTicket(payments, made, rootOf, unlessPrivate)
    default:
      return groupByMade(by, payments, made, rootOf, unlessPrivate)
  }
}

/** The branch, preceded by the project, because every project has its own `main`. */
function branchOf({ who }: SpenderPayment): string | undefined {
  const branch = who.own.branch ?? who.root.branch
  return branch === undefined || who.own.project === undefined ? branch : `${who.own.project} ${branch}`
}

function groupByPeriod(nameOf: (at: number) => string): Grouping {
  return { keyOf: ({ at }) => (at === 0 ? UNGROUPED.date : nameOf(at)), isPeriod: true }
}

function groupByBlock(payments: SpenderPayment[]): Grouping {
  const starts = fiveHourBlocks(payments.map(({ at }) => at))
  return { keyOf: ({ at }) => (at === 0 ? UNGROUPED.date : localMinute(starts.get(at)!)), isPeriod: true }
}

type HidePrivate = (
  keyOf: (payment: SpenderPayment) => string | undefined,
  fallback: string,
) => (payment: SpenderPayment) => string

function groupByConversation(
  payments: SpenderPayment[],
  unlessPrivate: HidePrivate,
  separateSubagents: boolean,
): Grouping {
  const spenderOf = ({ who }: SpenderPayment) => (separateSubagents ? who.own : who.root)
  const refOf = ({ source, native_id }: Spender) => formatRef(refFrom(source, native_id))
  const titles = new Map(payments.map((payment) => [refOf(spenderOf(payment)), spenderOf(payment).title]))
  return {
    keyOf: unlessPrivate((payment) => refOf(spenderOf(payment)), ""),
    titleOf: (key) => titles.get(key),
    isPeriod: false,
  }
}

/** Groups payments by the commit or pull request for which they were made, as `attributeSpending` decides. */
function groupByMade(
  by: "commit" | "pull_request",
  payments: SpenderPayment[],
  made: KnownMade[],
  rootOf: (id: number) => number,
  unlessPrivate: HidePrivate,
): Grouping {
  const nameOf = namesOfMade(payments, made, rootOf, by === "pull_request")
  const titles = new Map(made.map(({ name, subject }) => [name, subject]))
  return {
    keyOf: unlessPrivate((payment) => nameOf.get(payment), UNGROUPED[by]),
    titleOf: (key) => titles.get(key),
    isPeriod: false,
  }
}

/** The name of the commit or pull request for which each payment was made. */
function namesOfMade(
  payments: SpenderPayment[],
  made: KnownMade[],
  rootOf: (id: number) => number,
  afterwards: boolean,
): Map<SpenderPayment, string | undefined> {
  const rows = payments.map((payment) => ({ payment, conversation: payment.who.root.id, at: payment.at }))
  const origins = made.map(({ name, conversation, at }) => ({ name, conversation: rootOf(conversation), at }))
  const names = attributeSpending(rows, origins, { afterwards })
  return new Map(rows.map((row) => [row.payment, names.get(row)]))
}

/** Groups payments by the ticket in the branch's name, or in the subject of the commit for which they were made. */
function groupByTicket(
  payments: SpenderPayment[],
  commits: KnownMade[],
  rootOf: (id: number) => number,
  unlessPrivate: HidePrivate,
): Grouping {
  const commitOf = namesOfMade(payments, commits, rootOf, false)
  const subjects = new Map(commits.map(({ name, subject }) => [name, subject]))
  const ticketOf = (payment: SpenderPayment) => {
    const { own, root } = payment.who
    const branch = own.branch ?? root.branch
    const subject = subjects.get(commitOf.get(payment) ?? "")
    const ticket =
      (branch === undefined ? undefined : ticketOfBranch(branch)) ??
      (subject === undefined ? undefined : ticketOfSubject(subject))
    // Every repository has its own #12.
    return ticket?.startsWith("#") && own.project !== undefined ? `${own.project} ${ticket}` : ticket
  }
  return { keyOf: unlessPrivate(ticketOf, UNGROUPED.ticket), isPeriod: false }
}
