import { homedir } from "node:os"
import { join } from "node:path"
import { loadSettings } from "../../config/load.ts"
import { messageOf } from "../../core/error.ts"
import { readText } from "../../core/read-file.ts"
import type { SpendingFile } from "../../store/spending/spending-file.ts"
import type { KnownSpending, Spender } from "../../store/spending/spent.ts"
import { type PriceBook, parseOwnPrices, priceBook } from "../../usage/price-of.ts"
import { createPayment } from "../../usage/sums.ts"
import type { Dex } from "../context.ts"
import type { SpenderPayment } from "./groups.ts"

const MAX_BYTES = 1 << 20

export type PriceSettings = { book: PriceBook; plan?: string; problems: string[] }

/** The price lists, the user's own first, and the user's plan. A project's settings do not affect them. */
export function priceSettings(dex: Pick<Dex, "home" | "machine">): PriceSettings {
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env })
  const plan = settings["usage.plan"]
  const named = settings["usage.prices_file"]
  const { source, problems } = named === undefined ? { problems: [] } : readOwnPrices(named, dex.machine.home)
  return { book: priceBook(source ? [source] : []), problems, plan: plan || undefined }
}

function readOwnPrices(
  named: string,
  home: string = homedir(),
): Partial<ReturnType<typeof parseOwnPrices>> & { problems: string[] } {
  const file = named.startsWith("~/") ? join(home, named.slice(2)) : named
  try {
    return parseOwnPrices(readText(file, MAX_BYTES), file)
  } catch (error) {
    return { problems: [`Your own prices could not be read: ${file}: ${messageOf(error)}.`] }
  }
}

/** Looks up a conversation, and the root conversation that started it, if known. */
export function createSpenderLookup(spending: SpendingFile): {
  spender(id: number): Spender
  root(id: number): Spender
} {
  const all = spending.spenders()
  const byId = new Map(all.map((one) => [one.id, one]))
  const byName = new Map(all.map((one) => [`${one.source}:${one.native_id}`, one]))
  const root = (id: number) => {
    let one = byId.get(id)!
    const seen = new Set([one])
    for (;;) {
      const parent = one.parent === undefined ? undefined : byName.get(`${one.source}:${one.parent}`)
      if (!parent || seen.has(parent)) return one
      seen.add(parent)
      one = parent
    }
  }
  return { spender: (id) => byId.get(id)!, root }
}

export function paymentsOf(
  spent: KnownSpending[],
  { spender, root }: ReturnType<typeof createSpenderLookup>,
  isHidden: (project: string | undefined) => boolean,
  book: PriceBook,
): SpenderPayment[] {
  return spent.map((part) => {
    const own = spender(part.conversation)
    const who = { own, root: root(own.id), isPrivate: isHidden(own.project) }
    return createPayment(part, who, own.kind === "subagent", book)
  })
}
