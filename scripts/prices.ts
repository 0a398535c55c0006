// Writes src/usage/price-list.json from the content of npm packages: `npm run prices`. A test checks that the committed file is
// what this makes of the package that package-lock.json pins.
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inflateRawSync } from "node:zlib"
import { findProvider, type MatchLogic, type ModelInfo, type ModelPrice, TieredPrices } from "@pydantic/genai-prices"
import type { ListedPrice, PriceSource, Rates } from "../src/usage/price-of.ts"

/** In this order: the first row whose pattern matches a model's name is its price. */
const PROVIDERS = ["anthropic", "openai", "google", "x-ai", "deepseek", "moonshotai", "mistral", "zai", "minimax"]
/** Makers for which there are only a reseller's prices. */
const RESOLD = { openrouter: /^(?:qwen|z-ai)\/(?!.*:free$)/ }

const RATES = {
  input: "input_mtok",
  output: "output_mtok",
  cache_read: "cache_read_mtok",
  cache_write: "cache_write_mtok",
  cache_write_1h: "cache_write_1h_mtok",
  web_search: "web_searches_kcount",
} as const

export function listedPrices(): PriceSource {
  const own = PROVIDERS.flatMap((provider) => modelsOf(provider).flatMap((model) => pricesOf(provider, model)))
  const resold = Object.entries(RESOLD).flatMap(([provider, which]) =>
    modelsOf(provider)
      .filter(({ id }) => which.test(id))
      .flatMap((model) => pricesOf(provider, model)),
  )
  const manifest = createRequire(import.meta.url).resolve("@pydantic/genai-prices")
  const { version } = JSON.parse(readFileSync(join(manifest, "../../package.json"), "utf8")) as { version: string }
  return { package: "@pydantic/genai-prices", version, prices: [...own, ...resold] }
}

function modelsOf(provider: string): ModelInfo[] {
  const found = findProvider({ providerId: provider })
  if (!found) throw new Error(`@pydantic/genai-prices has no provider ${provider}`)
  return found.models
}

function pricesOf(provider: string, { id, match, prices }: ModelInfo): ListedPrice[] {
  const match_ = patternOf(match)
  const conditional = Array.isArray(prices) ? prices : [{ prices }]
  return conditional.flatMap(({ prices, constraint }) => {
    const rates = ratesAt(prices, 0)
    if (rates.input === undefined || rates.output === undefined) return [] // a model for embeddings, speech or images
    const long = stepsOf(prices).map((over) => ({ over, ...ratesAt(prices, over + 1) }))
    return {
      ...{ provider, model: id, match: match_ },
      ...(constraint?.type === "start_date" && { since: constraint.start_date }),
      ...(constraint?.type === "time_of_date" && {
        hours: [constraint.start_time.slice(0, 5), constraint.end_time.slice(0, 5)] as [string, string],
      }),
      rates,
      ...(long.length > 0 && { long }),
    }
  })
}

function ratesAt(prices: ModelPrice, tokens: number): Rates {
  const rates: Rates = {}
  for (const [name, key] of Object.entries(RATES)) {
    const price = prices[key]
    if (price === undefined) continue
    rates[name as keyof Rates] =
      price instanceof TieredPrices || typeof price === "object" ? tierAt(price, tokens) : price
  }
  return rates
}

function tierAt({ base, tiers }: TieredPrices, tokens: number): number {
  return tiers.reduce((price, tier) => (tokens > tier.start ? tier.price : price), base)
}

function stepsOf(prices: ModelPrice): number[] {
  const starts = Object.values(RATES).flatMap((key) => {
    const price = prices[key]
    return typeof price === "object" ? price.tiers.map(({ start }) => start) : []
  })
  return [...new Set(starts)].sort((a, b) => a - b)
}

/** Builds a regular expression for a model's name, without the folder of its reseller or maker. */
function patternOf(match: MatchLogic): string {
  if ("or" in match) return match.or.map(patternOf).join("|")
  if ("and" in match) return match.and.map((one) => `(?=.*(?:${patternOf(one)}))`).join("")
  if ("regex" in match) return `(?:${match.regex})`
  if ("equals" in match) return `^${plain(match.equals)}$`
  if ("starts_with" in match) return `^${plain(match.starts_with)}`
  return "ends_with" in match ? `${plain(match.ends_with)}$` : plain(match.contains)
}

const plain = (text: string) =>
  text
    .toLowerCase()
    .replace(/^.*\//, "")
    .replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")

/** The price of a model's fast mode, as a multiple of its price. These packages are only read here, never installed. */
function fastPrices(): PriceSource[] {
  const script = textIn("ccusage", "19.0.3", /^data-loader-.*\.js$/, "dist").toString("utf8")
  const plain = [...script.matchAll(/"(claude-[a-z0-9-]+)":\{[^{}]*provider_specific_entry:\{fast:(\d+)\}/g)]
  // Newer versions are binaries; the start of their table was found by trying every byte.
  const program = textIn("@ccusage/ccusage-linux-x64", "20.0.24", /^ccusage$/, "bin")
  const table = JSON.parse(inflateRawSync(program.subarray(723_634)).toString("utf8")) as Record<
    string,
    { fast?: number }
  >
  const packed = Object.entries(table).flatMap(([model, { fast }]) =>
    fast === undefined ? [] : [[model, fast] as const],
  )
  const times = (found: (readonly [string, number])[]) => Object.fromEntries(found)
  return [
    { package: "ccusage", version: "19.0.3", fast: times(plain.map(([, model, n]) => [model!, Number(n)] as const)) },
    { package: "@ccusage/ccusage-linux-x64", version: "20.0.24", fast: times(packed) },
  ]
}

function textIn(name: string, version: string, file: RegExp, folder: string): Buffer {
  const dir = mkdtempSync(join(tmpdir(), "prices-"))
  try {
    execFileSync("npm", ["pack", `${name}@${version}`, "--pack-destination", dir], { stdio: "ignore" })
    execFileSync("tar", ["xzf", join(dir, readdirSync(dir)[0]!), "-C", dir])
    const found = readdirSync(join(dir, "package", folder)).find((one) => file.test(one))
    return readFileSync(join(dir, "package", folder, found!))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** One price per line, so that a change of one price is a change of one line. */
export function priceListText(sources: PriceSource[]): string {
  const texts = sources.map(({ prices, ...source }) => {
    const head = JSON.stringify({ ...source, ...(prices && { prices: [] }) })
    return prices ? head.replace(/\]\}$/, `\n${prices.map((row) => JSON.stringify(row)).join(",\n")}\n]}`) : head
  })
  return `[\n${texts.join(",\n")}\n]\n`
}

if (import.meta.main)
  writeFileSync(
    new URL("../src/usage/price-list.json", import.meta.url),
    priceListText([listedPrices(), ...fastPrices()]),
  )
