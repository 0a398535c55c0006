import { agents } from "../../agents/registry.ts"
import { isoDate, localDay } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { followSpending, learningProgress } from "../../ingest/follow-spending.ts"
import { many } from "../../render/words.ts"
import { projectsNamed } from "../../search/scope.ts"
import type { SpendingFile } from "../../store/spending/spending-file.ts"
import type { KnownSpending } from "../../store/spending/spent.ts"
import { type Forecast, forecast, windowName } from "../../usage/limits.ts"
import { budgetWarnings, dollars, shortCount, usageLine } from "../../usage/line.ts"
import { totalMoney } from "../../usage/money.ts"
import { countTokens } from "../../usage/spending.ts"
import { type Sum, sumByGroup, totalSum } from "../../usage/sums.ts"
import type { Dex } from "../context.ts"
import { dateRange } from "../fields.ts"
import { LEARNING_UNFINISHED, otherPrivateProjects } from "../learned.ts"
import { unknownProject } from "../unknown-project.ts"
import { type Grouping, groupingBy, isUngrouped, type SpenderPayment } from "./groups.ts"
import { saveStatusLine } from "./keep-line.ts"
import { readLimits, saveLimits } from "./limits-file.ts"
import { createSpenderLookup, paymentsOf, priceSettings } from "./payments.ts"
import type { UsageGroup, UsageInput } from "./usage.ts"

export async function run(dex: Dex, input: UsageInput) {
  if (!dex.hasHistory()) throw new DexError("no_history", "No conversations have been read yet. Run `dex sync` first.")
  const { spending, notes } = await spendingOf(dex)
  const { isHidden } = await otherPrivateProjects(dex)
  const settings = priceSettings(dex)
  const { from = 0, to = Number.MAX_SAFE_INTEGER } = dateRange(input, dex.now())
  const spenders = createSpenderLookup(spending)
  const spentParts = spending.spentBetween(from, to)
  const wantedProjects =
    input.project === undefined ? undefined : projectsNamed(await (await dex.store()).projects(), input.project)
  const requestedPayments = (parts: KnownSpending[]) =>
    paymentsOf(parts, spenders, isHidden, settings.book).filter((payment) =>
      isRequested(payment, input, wantedProjects),
    )
  const payments = requestedPayments(spentParts.filter(({ superseded }) => !superseded))
  const removed = requestedPayments(spentParts.filter(({ superseded }) => superseded))
  const made = input.by === "ticket" ? "commit" : input.by
  const madeThings = made === "commit" || made === "pull_request" ? spending.madeThings(made) : []
  const grouping = groupingBy(input.by, payments, madeThings, (id) => spenders.root(id).id, input.subagents === true)
  const rows = rowsOf(payments, grouping, input)
  const line = saveStatusLine(dex, spending, settings)
  const times = payments.map(({ at }) => at).filter((at) => at > 0)
  const unknownProjectNote =
    input.project === undefined ? undefined : await unknownProject(await dex.store(), input.project, dex.project)
  const sum = totalSum(payments)
  return {
    by: input.by,
    rows: rows.shown,
    total: roundSum(sum, payments),
    ...(times.length > 0 && {
      from: isoDate(Math.min(...minAndMax(times))),
      to: isoDate(Math.max(...minAndMax(times))),
    }),
    days: daysOf(payments),
    models: modelsOf(payments),
    rows_left_out: rows.left_out,
    plan: settings.plan,
    limits: await planLimits(dex),
    line: input.line ? usageLine(line, dex.now()) : undefined,
    notes: [
      ...notes,
      ...settings.problems,
      ...budgetWarnings(line.budgets ?? [], dex.now()).map((warning) => `${warning}.`),
      ...(unknownProjectNote === undefined ? [] : [unknownProjectNote]),
      ...notesOn(input.by, payments, sum, totalSum(removed).tokens),
    ],
  }
}

/** The limits of all agents' plans that have not been reset since they were reported. */
async function planLimits(dex: Dex) {
  for (const { source, limits, roots } of agents) {
    const report = limits && roots ? (await limits())(roots(dex.machine)) : undefined
    if (report) saveLimits(dex.home.limits, source, report)
  }
  const now = dex.now()
  const rows = Object.entries(readLimits(dex.home.limits)).flatMap(([agent, reported]) =>
    reported.limits
      .filter(({ resets_at }) => resets_at > now)
      .map((limit) => ({
        agent,
        window: windowName(limit.minutes),
        used_percent: limit.used,
        resets_at: isoDate(limit.resets_at),
        reported_at: isoDate(reported.at),
        forecast: forecastFields(forecast(limit, reported)),
      })),
  )
  return rows.length === 0 ? undefined : rows
}

function forecastFields(expected: Forecast | undefined) {
  if (!expected) return undefined
  const { from, to } = expected
  return expected.type === "lasts"
    ? { percent_from: Math.round(from), percent_to: Math.round(expected.to) }
    : { full_from: isoDate(from), full_to: to === undefined ? undefined : isoDate(to) }
}

/** The smallest and the largest value. `Math.min(...times)` would fail if there were very many values. */
function minAndMax(times: number[]): [number, number] {
  return times.reduce(([least, most], at) => [Math.min(least, at), Math.max(most, at)], [Infinity, -Infinity])
}

function isRequested(
  { who, model }: SpenderPayment,
  { source, model: named }: UsageInput,
  wantedProjects: readonly string[] | undefined,
): boolean {
  const contains = (text: string | undefined, part: string) => (text ?? "").toLowerCase().includes(part.toLowerCase())
  if (wantedProjects && (who.isPrivate || !wantedProjects.includes(who.own.project ?? ""))) return false
  if (source !== undefined && who.own.source !== source) return false
  return named === undefined || contains(model, named)
}

function rowsOf(payments: SpenderPayment[], { keyOf, titleOf, isPeriod }: Grouping, { subagents, limit }: UsageInput) {
  const groups = Map.groupBy(
    payments,
    (payment) => `${keyOf(payment)}${subagents && payment.isSubagent ? SUBAGENTS : ""}`,
  )
  const rows = [...groups].map(([name, members]) => {
    const isSeparate = name.endsWith(SUBAGENTS)
    const key = isSeparate ? name.slice(0, -SUBAGENTS.length) : name
    const title = titleOf?.(key)
    return {
      key,
      title,
      subagents: isSeparate || undefined,
      ...roundSum(totalSum(members), members),
    }
  })
  if (isPeriod) rows.sort((a, b) => (a.key === b.key ? 0 : a.key < b.key ? -1 : 1))
  else rows.sort((a, b) => b.cost - a.cost || b.tokens - a.tokens || (a.key < b.key ? -1 : 1))
  // Payments without a group and those of private projects come last. They are always included, whatever the limit is.
  const [namedRows, ungroupedRows] = [
    rows.filter(({ key }) => !isUngrouped(key)),
    rows.filter(({ key }) => isUngrouped(key)),
  ]
  const shownRows = [...(isPeriod ? namedRows.slice(-limit) : namedRows.slice(0, limit)), ...ungroupedRows]
  return { shown: shownRows, left_out: rows.length - shownRows.length }
}

const SUBAGENTS = "\0subagents"

function roundSum({ money, cost, subagent_cost, recorded: _, ...sum }: Sum, payments: SpenderPayment[]) {
  const parts = Object.entries(money).map(([name, amount]) => [name, roundDollars(amount)])
  return {
    ...sum,
    cost: roundDollars(cost),
    subagent_cost: roundDollars(subagent_cost),
    conversations: countRoots(payments),
    cost_of: Object.fromEntries(parts) as typeof money,
  }
}

/** Rounds to a millionth of a dollar, because further digits are rounding errors. */
const roundDollars = (amount: number) => Math.round(amount * 1e6) / 1e6

type DaySum = {
  tokens: number
  cost: number
  roots: Set<number>
  models: Map<string, { tokens: number; cost: number }>
}

/** Sums up the payments of each day. This takes a single pass, because a history has many payments. */
function daysOf(payments: SpenderPayment[]) {
  const days = new Map<string, DaySum>()
  for (const payment of payments) {
    if (payment.at <= 0) continue
    const day = localDay(payment.at)
    const sum = days.get(day) ?? { tokens: 0, cost: 0, roots: new Set<number>(), models: new Map() }
    days.set(day, sum)
    const model = sum.models.get(payment.model ?? "") ?? { tokens: 0, cost: 0 }
    sum.models.set(payment.model ?? "", model)
    const tokens = countTokens(payment)
    const cost = totalMoney(payment.priced.money)
    sum.tokens += tokens
    sum.cost += cost
    sum.roots.add(payment.who.root.id)
    model.tokens += tokens
    model.cost += cost
  }
  return [...days]
    .map(([day, { tokens, cost, roots, models }]) => ({
      ...{ day, tokens, cost: roundDollars(cost), conversations: roots.size },
      models: [...models]
        .map(([model, sum]) => ({ model, tokens: sum.tokens, cost: roundDollars(sum.cost) }))
        .sort((a, b) => b.cost - a.cost || b.tokens - a.tokens),
    }))
    .sort((a, b) => (a.day < b.day ? -1 : 1))
}

const countRoots = (payments: SpenderPayment[]) => new Set(payments.map(({ who }) => who.root.id)).size

function modelsOf(payments: SpenderPayment[]) {
  const groups = Map.groupBy(payments, ({ model, priced }) => `${model ?? ""}\0${priced.price?.since ?? ""}`)
  const models = [...groups.values()].map((members) => {
    const [
      {
        model = "",
        priced: { price },
      },
    ] = members as [SpenderPayment]
    const { tokens, cost } = totalSum(members)
    return {
      model,
      tokens,
      cost: roundDollars(cost),
      price_of: price && `${price.provider} ${price.model}`,
      from: price?.from,
      since: price?.since,
    }
  })
  return models.sort((a, b) => b.cost - a.cost || b.tokens - a.tokens)
}

function notesOn(by: UsageGroup, payments: SpenderPayment[], sum: Sum, removedTokens: number): string[] {
  const unpriced = sumByGroup(
    payments.filter(({ priced }) => priced.unpriced === "tokens"),
    ({ model }) => model ?? "",
  )
  const unknown = sumByGroup(
    payments.filter(({ priced }) => priced.unknown !== undefined),
    ({ model, priced }) => `${model}, ${priced.unknown}`,
  )
  const unpricedSearchCount = payments.reduce(
    (n, { priced, web_searches }) => n + (priced.unpriced === "searches" ? web_searches : 0),
    0,
  )
  return [
    ...(by === "commit"
      ? [
          "A commit is charged with what the conversation that ran it, and its subagents, used since its previous commit. Commits that no conversation ran are not listed.",
        ]
      : []),
    ...(by === "pull_request"
      ? [
          "A pull request is charged with what the conversations that opened or linked it, and their subagents, used since their previous one. Their last one is also charged with what they used after it.",
        ]
      : []),
    ...[...unpriced].map(
      ([model, { tokens, web_searches }]) =>
        `No price is known for ${model === "" ? "answers without a model's name" : model}: ${grouped(tokens)} tokens${web_searches > 0 ? ` and ${grouped(web_searches)} searches` : ""} are not included in the cost. To add a price: \`dex config set usage.prices_file …\``,
    ),
    ...[...unknown].map(
      ([what, { tokens }]) =>
        `No price is known for ${what}: ${grouped(tokens)} tokens are counted at the model's standard price.`,
    ),
    ...(unpricedSearchCount > 0
      ? [
          `Not included in the cost, because no price is known: ${many(unpricedSearchCount, "web search", "web searches")}.`,
        ]
      : []),
    ...(sum.money.recorded > 0
      ? [
          `${dollars(sum.money.recorded)} of the cost was recorded by the agents themselves, because no price list has those models.`,
        ]
      : []),
    ...(removedTokens > 0
      ? [
          `${shortCount(removedTokens)} tokens of messages that agents have since removed from their files are not counted.`,
        ]
      : []),
  ]
}

/** The maximum number of conversations that a server reads itself. If there are more, another process reads them. */
const MAX_READ_IN_SERVER = 16

/**
 * Updates the spending from the history, and returns it. Every sync does that too, so there is much to read only if the history
 * was imported or was written by an older dex. The notes say what is not known yet.
 */
export async function spendingOf(dex: Dex): Promise<{ spending: SpendingFile; notes: string[] }> {
  const spending = await dex.spending()
  const store = await dex.store()
  const { complete } = await followSpending(store, spending, {
    maxReads: dex.learnInBackground && MAX_READ_IN_SERVER,
    signal: dex.signal,
    onProgress: dex.onProgress && learningProgress(store, dex.onProgress),
  })
  if (complete) return { spending, notes: [] }
  return {
    spending,
    notes: dex.learnInBackground ? await dex.learnInBackground({ only: "spending" }) : [LEARNING_UNFINISHED],
  }
}
