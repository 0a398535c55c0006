import { isRecord, parseObject } from "../core/record.ts"
import { CONTEXT_STEPS } from "./context-steps.ts"
import { type ListedPrice, type PriceSource, plainName, type Rates } from "./price-of.ts"

const RATES = ["input", "output", "cache_read", "cache_write", "cache_write_1h", "web_search"]

/** The user's own prices out of the text of their file, and what of it was not understood. */
export function ownPrices(text: string, file: string): { source: PriceSource; problems: string[] } {
  const problems: string[] = []
  const source = { package: file, version: "", prices: [] as ListedPrice[], fast: {} as Record<string, number> }
  const said = parseObject(text)
  if (!said) return { source, problems: [`${file} is not a JSON object of models and their prices.`] }
  for (const [model, value] of Object.entries(said)) {
    const problem = isRecord(value) ? addOwn(source, model, value) : "has no prices"
    if (problem !== undefined) problems.push(`${file}: ${JSON.stringify(model)} ${problem}. It was ignored.`)
  }
  return { source, problems }
}

function addOwn(
  source: { prices: ListedPrice[]; fast: Record<string, number> },
  model: string,
  { fast, long = [], ...value }: Record<string, unknown>,
): string | undefined {
  const rates = ratesOf(value)
  if (typeof rates === "string") return rates
  if (rates.input === undefined || rates.output === undefined) return "needs input and output"
  const steps: ({ over: number } & Rates)[] = []
  for (const one of Array.isArray(long) ? long : [long]) {
    const { over, ...more } = isRecord(one) ? one : {}
    const above = ratesOf(more)
    if (typeof above === "string") return above
    if (!CONTEXT_STEPS.includes(over as number)) return `can have long only with over ${CONTEXT_STEPS.join(", ")}`
    steps.push({ over: over as number, ...rates, ...above })
  }
  const name = plainName(model.replace(/\*$/, ""))
  const match = `^${name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}${model.endsWith("*") ? "" : "$"}`
  steps.sort((a, b) => a.over - b.over)
  source.prices.push({ provider: "own", model, match, rates, long: steps.length > 0 ? steps : undefined })
  if (typeof fast === "number") source.fast[name] = fast
  return undefined
}

function ratesOf(value: Record<string, unknown>): Rates | string {
  for (const [name, rate] of Object.entries(value)) {
    if (!RATES.includes(name)) return `has ${JSON.stringify(name)}, which is not one of ${RATES.join(", ")}, long, fast`
    if (typeof rate !== "number" || !(rate >= 0)) return `has a ${name} that is not a number of dollars`
  }
  return value as Rates
}
