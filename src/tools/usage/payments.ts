import { homedir } from "node:os"
import { join } from "node:path"
import { loadSettings } from "../../config/load.ts"
import { parseBudgets } from "../../config/settings.ts"
import { messageOf } from "../../core/error.ts"
import { readText } from "../../core/read-file.ts"
import type { SpendingFile } from "../../store/spending/spending-file.ts"
import type { KnownSpending, Spender } from "../../store/spending/spent.ts"
import { type PriceBook, parseOwnPrices, priceBook } from "../../usage/price-of.ts"
import { createPayment } from "../../usage/sums.ts"
import type { Dex } from "../context.ts"
import type { SpenderPayment } from "./groups.ts"

const MAX_BYTES = 1 << 20

export type PriceSettings = {
  book: PriceBook
  plan?: string
  /** In dollars. */
  budgets: { day?: number; week?: number }
  problems: string[]
}

/** The price lists, the user's own first, and the user's plan. A project's settings do not affect them. */
export function priceSettings(dex: Pick<Dex, "home" | "machine">): PriceSettings {
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env })
  const plan = settings["usage.plan"]
  const pricesFile = settings["usage.prices_file"]
  const { source, problems } = pricesFile === undefined ? { problems: [] } : readOwnPrices(pricesFile, dex.machine.home)
  const budgets = parseBudgets(settings["usage.budget"])
  return { book: priceBook(source ? [source] : []), problems, plan: plan || undefined, budgets }
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

/** Looks up a conversation by its id, and the known conversation at the top of its chain of parents. */
export function createSpenderLookup(spending: SpendingFile): {
  spender(id: number): Spender
  root(id: number): Spender
} {
  const spenders = spending.spenders()
  const byId = new Map(spenders.map((spender) => [spender.id, spender]))
  const byName = new Map(spenders.map((spender) => [`${spender.source}:${spender.native_id}`, spender]))
  const root = (id: number) => {
    let current = byId.get(id)!
    const visited = new Set([current])
    for (;;) {
      const parent = current.parent === undefined ? undefined : byName.get(`${current.source}:${current.parent}`)
      if (!parent || visited.has(parent)) return current
      visited.add(parent)
      current = parent
    }
  }
  return { spender: (id) => byId.get(id)!, root }
}

export function paymentsOf(
  spentParts: KnownSpending[],
  { spender, root }: ReturnType<typeof createSpenderLookup>,
  isHidden: (project: string | undefined) => boolean,
  book: PriceBook,
): SpenderPayment[] {
  return spentParts.map((part) => {
    const conversation = spender(part.conversation)
    const who = { own: conversation, root: root(conversation.id), isPrivate: isHidden(conversation.project) }
    return createPayment(part, who, conversation.kind === "subagent", book)
  })
}
