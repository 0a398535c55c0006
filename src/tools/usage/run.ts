import { isoDate, localDay } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { followSpending, learningProgress } from "../../ingest/follow-spending.ts"
import type { SpendingFile } from "../../store/spending/spending-file.ts"
import type { KnownSpending } from "../../store/spending/spent.ts"
import { dollars, shortCount, usageLine } from "../../usage/line.ts"
import { totalMoney } from "../../usage/money.ts"
import { countTokens } from "../../usage/spending.ts"
import { type Sum, sumByGroup, totalSum } from "../../usage/sums.ts"
import type { Dex } from "../context.ts"
import { dateRange } from "../fields.ts"
import { LEARNING_UNFINISHED, otherPrivateProjects } from "../learned.ts"
import { unknownProject } from "../unknown-project.ts"
import { type Grouping, groupingBy, type SpenderPayment } from "./groups.ts"
import { saveStatusLine } from "./keep-line.ts"
import { createSpenderLookup, paymentsOf, priceSettings } from "./payments.ts"
import type { UsageGroup, UsageInput } from "./usage.ts"

export async function run(dex: Dex, input: UsageInput) {
  if (!dex.hasHistory()) throw new DexError("no_history", "No conversations have been read yet. Run `dex sync` first.")
  const { spending, notes } = await spendingOf(dex)
  const { isHidden } = await otherPrivateProjects(dex)
  const settings = priceSettings(dex)
  const { from = 0, to = Number.MAX_SAFE_INTEGER } = dateRange(input, dex.now())
  const family = createSpenderLookup(spending)
  const known = spending.spentBetween(from, to)
  const matching = (parts: KnownSpending[]) =>
    paymentsOf(parts, family, isHidden, settings.book).filter((one) => isRequested(one, input))
  const paid = matching(known.filter(({ superseded }) => !superseded))
  const gone = matching(known.filter(({ superseded }) => superseded))
  const things = input.by === "commit" || input.by === "pull_request" ? spending.madeThings(input.by) : []
  const grouping = groupingBy(input.by, paid, things, (id) => family.root(id).id, input.subagents === true)
  const rows = rowsOf(paid, grouping, input)
  const line = saveStatusLine(dex, spending, settings)
  const dated = paid.map(({ at }) => at).filter((at) => at > 0)
  const unknown =
    input.project === undefined ? undefined : await unknownProject(await dex.store(), input.project, dex.project)
  const sum = totalSum(paid)
  return {
    by: input.by,
    rows: rows.shown,
    total: shown(sum, paid),
    ...(dated.length > 0 && { from: isoDate(Math.min(...extremes(dated))), to: isoDate(Math.max(...extremes(dated))) }),
    days: daysOf(paid),
    models: modelsOf(paid),
    rows_left_out: rows.left_out,
    plan: settings.plan,
    line: input.line ? usageLine(line, dex.now()) : undefined,
    notes: [
      ...notes,
      ...settings.problems,
      ...(unknown === undefined ? [] : [unknown]),
      ...notesOn(input.by, paid, sum, totalSum(gone).tokens),
    ],
  }
}

/** `Math.min` fails with a hundred thousand arguments. */
function extremes(times: number[]): [number, number] {
  return times.reduce(([least, most], at) => [Math.min(least, at), Math.max(most, at)], [Infinity, -Infinity])
}

function isRequested({ who, model }: SpenderPayment, { project, source, model: named }: UsageInput): boolean {
  const has = (text: string | undefined, part: string) => (text ?? "").toLowerCase().includes(part.toLowerCase())
  if (project !== undefined && (who.isPrivate || !has(who.own.project, project))) return false
  if (source !== undefined && who.own.source !== source) return false
  return named === undefined || has(model, named)
}

function rowsOf(paid: SpenderPayment[], { keyOf, titleOf, isPeriod }: Grouping, { subagents, limit }: UsageInput) {
  const groups = Map.groupBy(paid, (one) => `${keyOf(one)}${subagents && one.isSubagent ? SUBAGENTS : ""}`)
  const rows = [...groups].map(([name, members]) => {
    const isSeparate = name.endsWith(SUBAGENTS)
    const key = isSeparate ? name.slice(0, -SUBAGENTS.length) : name
    const title = titleOf?.(key)
    return {
      key,
      title,
      subagents: isSeparate || undefined,
      ...shown(totalSum(members), members),
    }
  })
  if (isPeriod) rows.sort((a, b) => (a.key === b.key ? 0 : a.key < b.key ? -1 : 1))
  else rows.sort((a, b) => b.cost - a.cost || b.tokens - a.tokens || (a.key < b.key ? -1 : 1))
  // Payments that belong to no group form the last row, which is always included, so that the rows add up to the total.
  const [named, rest] = [rows.filter(({ key }) => !isRest(key)), rows.filter(({ key }) => isRest(key))]
  const kept = [...(isPeriod ? named.slice(-limit) : named.slice(0, limit)), ...rest]
  return { shown: kept, left_out: rows.length - kept.length }
}

const isRest = (key: string) => key.startsWith("(")
const SUBAGENTS = "\0subagents"

function shown({ money, cost, subagent_cost, recorded: _, ...sum }: Sum, paid: SpenderPayment[]) {
  const parts = Object.entries(money).map(([name, amount]) => [name, rounded(amount)])
  return {
    ...sum,
    cost: rounded(cost),
    subagent_cost: rounded(subagent_cost),
    conversations: rootsOf(paid),
    cost_of: Object.fromEntries(parts) as typeof money,
  }
}

/** Rounded to a millionth of a dollar, because further digits are rounding errors. */
const rounded = (amount: number) => Math.round(amount * 1e6) / 1e6

type DaySum = {
  tokens: number
  cost: number
  roots: Set<number>
  models: Map<string, { tokens: number; cost: number }>
}

/** Sums each day in one pass, because a history has many payments and every view of days needs this. */
function daysOf(paid: SpenderPayment[]) {
  const days = new Map<string, DaySum>()
  for (const one of paid) {
    if (one.at <= 0) continue
    const day = localDay(one.at)
    const sum = days.get(day) ?? { tokens: 0, cost: 0, roots: new Set<number>(), models: new Map() }
    days.set(day, sum)
    const model = sum.models.get(one.model ?? "") ?? { tokens: 0, cost: 0 }
    sum.models.set(one.model ?? "", model)
    const tokens = countTokens(one)
    const cost = totalMoney(one.priced.money)
    sum.tokens += tokens
    sum.cost += cost
    sum.roots.add(one.who.root.id)
    model.tokens += tokens
    model.cost += cost
  }
  return [...days]
    .map(([day, { tokens, cost, roots, models }]) => ({
      ...{ day, tokens, cost: rounded(cost), conversations: roots.size },
      models: [...models]
        .map(([model, sum]) => ({ model, tokens: sum.tokens, cost: rounded(sum.cost) }))
        .sort((a, b) => b.cost - a.cost || b.tokens - a.tokens),
    }))
    .sort((a, b) => (a.day < b.day ? -1 : 1))
}

const rootsOf = (paid: SpenderPayment[]) => new Set(paid.map(({ who }) => who.root.id)).size

function modelsOf(paid: SpenderPayment[]) {
  const groups = Map.groupBy(paid, ({ model, priced }) => `${model ?? ""}\0${priced.price?.since ?? ""}`)
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
      cost: rounded(cost),
      price_of: price && `${price.provider} ${price.model}`,
      from: price?.from,
      since: price?.since,
    }
  })
  return models.sort((a, b) => b.cost - a.cost || b.tokens - a.tokens)
}

function notesOn(by: UsageGroup, paid: SpenderPayment[], sum: Sum, gone: number): string[] {
  const unpriced = sumByGroup(
    paid.filter(({ priced }) => priced.unpriced === "tokens"),
    ({ model }) => model ?? "",
  )
  const unknown = sumByGroup(
    paid.filter(({ priced }) => priced.unknown !== undefined),
    ({ model, priced }) => `${model}, ${priced.unknown}`,
  )
  const searches = paid.reduce(
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
          "A pull request is charged with what the conversations that opened or linked it, and their subagents, used for it: all before it, up to the previous one, and all after the last one.",
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
    ...(searches > 0
      ? [`${grouped(searches)} web searches have no known price and are not included in the cost.`]
      : []),
    ...(sum.money.recorded > 0
      ? [
          `${dollars(sum.money.recorded)} of the cost was recorded by the agents themselves, because no price list has those models.`,
        ]
      : []),
    ...(gone > 0
      ? [`${shortCount(gone)} tokens of messages that agents have since removed from their files are not counted.`]
      : []),
  ]
}

/** The most conversations that a server reads itself. More are read in another process. */
const MAX_READ_IN_SERVER = 16

/**
 * The spending, updated from the history. Syncs update it too, so there is something to read only after a history was imported or
 * was filled by an older dex. The notes say what is not known yet.
 */
export async function spendingOf(dex: Dex): Promise<{ spending: SpendingFile; notes: string[] }> {
  const spending = await dex.spending()
  const store = await dex.store()
  const { complete } = await followSpending(store, spending, {
    mostRead: dex.learnInBackground && MAX_READ_IN_SERVER,
    signal: dex.signal,
    onProgress: dex.onProgress && learningProgress(store, dex.onProgress),
  })
  if (complete) return { spending, notes: [] }
  return {
    spending,
    notes: dex.learnInBackground ? await dex.learnInBackground({ only: "spending" }) : [LEARNING_UNFINISHED],
  }
}
