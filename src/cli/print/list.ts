import { formatCount, grouped } from "../../core/format.ts"
import { clip, padEnd, paint, safeLine } from "../../render/terminal.ts"
import type { PrintContext, Printed } from "./printer.ts"
import { many, projectName, when } from "./words.ts"

type Row = {
  id: string
  title: string
  project: string
  source: string
  date: string
  kind: string
  message_count: number
  estimated_tokens: number
}
type Output = { conversations: Row[]; total: number; left_out: Record<string, number>; next_offset?: number }

const LEFT_OUT_WORDS: Record<string, string> = { subagent: "by subagents", automation: "automated", dex: "dex's own" }

export function printList(output: Output, { terminal }: PrintContext): Printed {
  const notes: string[] = []
  const leftOut = Object.entries(output.left_out).map(
    ([kind, count]) => `${grouped(count)} ${LEFT_OUT_WORDS[kind] ?? kind}`,
  )
  if (output.conversations.length === 0)
    notes.push(
      "No conversations here. `dex sync` reads what your agents have written; `dex sources` shows where dex looks.",
    )
  else
    notes.push(
      `${output.conversations.length} of ${many(output.total, "conversation")}. Read one: dex show 1${output.next_offset === undefined ? "" : `. More: --offset ${output.next_offset}`}`,
    )
  if (leftOut.length > 0) notes.push(`Not shown: ${leftOut.join(", ")}; show with --all`)
  const lines = output.conversations.flatMap((row, i) => rowLines(row, i + 1, terminal))
  return { lines, notes, listing: output.conversations.map((row) => row.id) }
}

function rowLines(row: Row, number: number, terminal: PrintContext["terminal"]): string[] {
  const wide = terminal.columns >= 100
  const head = `${paint(terminal, "cyan", String(number).padStart(3))}  ${when(row.date)}  `
  const size = `${row.message_count} msg, ${formatCount(row.estimated_tokens)} tok`
  const kind = row.kind === "person" ? "" : ` (${row.kind})`
  const title = safeLine(row.title) + kind
  if (!wide) {
    return [
      head + clip(title, terminal.columns - 23),
      `     ${paint(terminal, "dim", clip(`${row.source} · ${projectName(safeLine(row.project))} · ${size} · ${row.id.split(":")[1]?.slice(0, 8)}`, terminal.columns - 5))}`,
    ]
  }
  const titleWidth = terminal.columns - 23 - 14 - 18 - 20
  const columns = [
    padEnd(clip(title, titleWidth - 2), titleWidth),
    padEnd(row.source, 14),
    padEnd(clip(projectName(safeLine(row.project)), 16), 18),
    size,
  ]
  return [head + columns.join("")]
}
