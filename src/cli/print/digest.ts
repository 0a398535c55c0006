import type { ProjectFacts } from "../../answers/digest/facts.ts"
import { factsPage } from "../../answers/digest/page.ts"
import type { digest } from "../../answers/digest.ts"
import { markdownOf } from "../../answers/map/markdown.ts"
import { localDay } from "../../core/dates.ts"
import { listed } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { many } from "../../render/words.ts"
import { factsScreen } from "./digest-screen.ts"
import { costLines, printMap } from "./map.ts"
import type { PrintContext, Printed } from "./printer.ts"
import { showFirst } from "./words.ts"

type Output = OutputOf<typeof digest>

export function printDigest(output: Output, context: PrintContext, asked: { all?: boolean }): Printed {
  const { projects, mapped, notes } = output
  const days = daysOf(output)
  if (projects.length === 0)
    return { lines: [], notes: [`No conversations: ${days}. \`dex sync\` reads what is new.`, ...notes] }
  if (mapped?.dry_run) return printMap(mapped, context)
  const said = mapped?.result
    ? [...markdownOf(`Digest: ${days}`, mapped.result, []).split("\n"), "# The facts", ""]
    : []
  const { lines, listing, left_out } = asked.all ? whole(projects) : factsScreen(projects, context)
  return {
    lines: [...(mapped?.partial ? ["PARTIAL", ""] : []), ...said, headLine(days, projects), "", ...lines],
    notes: [
      ...(listing.length > 0 ? [`Read one: ${showFirst(listing, context)}`] : []),
      ...(left_out.length > 0 ? [`Not shown: ${listed(left_out)}. --all shows everything.`] : []),
      ...notes,
      ...(mapped ? [...mapped.notes, ...costLines(mapped)] : []),
    ],
    listing,
  }
}

function whole(projects: ProjectFacts[]): { lines: string[]; listing: string[]; left_out: string[] } {
  const listing = projects.flatMap(({ conversations }) => conversations.map(({ id }) => id))
  return { lines: factsPage(projects), listing, left_out: [] }
}

const NAMES: Record<string, string> = { today: "today, ", yesterday: "yesterday, ", week: "the last seven days, " }

function daysOf({ period, from, to }: Output): string {
  const [first, last] = [localDay(Date.parse(from)), localDay(Date.parse(to))]
  return `${NAMES[period] ?? ""}${first === last ? first : `${first} to ${last}`}`
}

function headLine(days: string, projects: ProjectFacts[]): string {
  const sum = (of: (facts: ProjectFacts) => number) => projects.reduce((total, facts) => total + of(facts), 0)
  const messages = sum(({ conversations }) => conversations.reduce((total, one) => total + one.messages, 0))
  const counts = [
    many(
      sum(({ conversations }) => conversations.length),
      "conversation",
    ),
    many(messages, "message"),
    many(
      sum(({ decisions_total }) => decisions_total),
      "decision",
    ),
    many(
      sum(({ commits }) => commits.length),
      "commit",
    ),
  ]
  return `${days.charAt(0).toUpperCase()}${days.slice(1)}: ${listed(counts)} in ${many(projects.length, "project")}`
}
