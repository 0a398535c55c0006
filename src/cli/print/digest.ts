import type { digest } from "../../answers/digest.ts"
import { factsPage } from "../../answers/digest-page.ts"
import { markdownOf } from "../../answers/map/markdown.ts"
import type { OutputOf } from "../../core/tool.ts"
import { costLines, printMap } from "./map.ts"
import type { PrintContext, Printed } from "./printer.ts"

type Output = OutputOf<typeof digest>

export function printDigest({ period, projects, mapped, notes }: Output, context: PrintContext): Printed {
  const days = period === "today" ? "today" : "in the last seven days"
  if (projects.length === 0)
    return { lines: [], notes: [`No conversations ${days}. \`dex sync\` reads what is new.`, ...notes] }
  if (mapped?.dry_run) return printMap(mapped, context)
  const said = mapped?.result
    ? [...markdownOf(`Digest: ${days}`, mapped.result, []).split("\n"), "# The facts", ""]
    : []
  return {
    lines: [...(mapped?.partial ? ["PARTIAL", ""] : []), ...said, ...factsPage(projects)],
    notes: [...notes, ...(mapped ? [...mapped.notes, ...costLines(mapped)] : [])],
    listing: projects.flatMap(({ conversations }) => conversations.map(({ id }) => id)),
  }
}
