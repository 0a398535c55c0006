import { agentOf, agents } from "../../agents/registry.ts"
import { DAY_MS, localDay } from "../../core/dates.ts"
import { clip, padEnd, paint, type Style, safeLine, signsOf, widthOf } from "../../render/terminal.ts"
import { projectName } from "../../render/words.ts"
import type { PickerRow } from "./state.ts"

type RowLook = {
  columns: number
  color: boolean
  now: number
  isSelected: boolean
  hasSnippet: boolean
  /** How wide each is; 0 where it would say the same of every row, or the title needs the room. */
  age: number
  agent: number
  project: number
}
type Widths = Pick<RowLook, "age" | "agent" | "project">

const MOST_AGENT = 12
const MOST_PROJECT = 14
/** Below this the title needs all the room. */
const PROJECT_FROM_COLUMNS = 56
const AGENT_FROM_COLUMNS = 44

/** What stands at the right of these rows. */
export function rowWidths(rows: readonly PickerRow[], columns: number, now: number): Widths {
  const widest = (texts: string[]) => Math.max(0, ...texts.map(widthOf))
  const differing = (texts: string[]) => (new Set(texts).size > 1 ? widest(texts) : 0)
  const project = differing(rows.map((row) => projectName(safeLine(row.project))))
  return {
    age: widest(rows.map((row) => ageOf(row.time, now))),
    agent: columns < AGENT_FROM_COLUMNS ? 0 : differing(rows.map((row) => agentWord(row.source))),
    project: columns < PROJECT_FROM_COLUMNS ? 0 : Math.min(MOST_PROJECT, project),
  }
}

/** A conversation in the list: its title, how old it is and whose; while searching, below it what matched. */
export function rowLines(row: PickerRow, look: RowLook): string[] {
  const { columns, isSelected } = look
  const mark = isSelected ? paint(look, "cyan", "▌") : " "
  const right = [
    paint(look, "dim", ageOf(row.time, look.now).padStart(look.age)),
    ...(look.agent > 0 ? [paint(look, colourOf(row.source), padEnd(agentWord(row.source), look.agent))] : []),
    ...(look.project > 0
      ? [paint(look, "dim", padEnd(clip(projectName(safeLine(row.project)), look.project), look.project))]
      : []),
  ].join("  ")
  const room = columns - 2 - widthOf(right) - 3
  const title = padEnd(clip(safeLine(row.title), room), room)
  const first = `${mark} ${isSelected ? paint(look, "bold", title) : title}  ${right}`
  if (!look.hasSnippet) return [first]
  return [first, `${mark}   ${paint(look, "dim", marked(safeLine(row.snippet ?? ""), columns - 5, look))}`]
}

/** now, 5m, 3h, 2d; after two weeks the day, 02-16; after ten months the month, 2025-02. */
export function ageOf(time: string, now: number): string {
  const at = Date.parse(time)
  if (Number.isNaN(at)) return ""
  const minutes = Math.floor((now - at) / 60_000)
  if (minutes < 1) return "now"
  if (minutes < 60) return `${minutes}m`
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)}h`
  const days = Math.floor((now - at) / DAY_MS)
  if (days < 14) return `${days}d`
  return days < 300 ? localDay(at).slice(5) : localDay(at).slice(0, 7)
}

/** The shortest word that people type for an agent. */
export function agentWord(source: string): string {
  return clip(safeLine(agentOf(source)?.aliases?.[0] ?? source), MOST_AGENT)
}

const COLOURS: readonly Style[] = ["cyan", "green", "magenta", "yellow", "blue"]

function colourOf(source: string): Style {
  const at = agents.findIndex((agent) => agent.source === source)
  return COLOURS[Math.max(0, at) % COLOURS.length]!
}

/** A snippet with its matches in colour, or, without colours, as it is. It is cut so that the first of them is seen. */
function marked(snippet: string, columns: number, look: RowLook): string {
  const [before = "", ...rest] = snippet.split(/\*\*([^*]+)\*\*/)
  const head = widthOf(before) > columns / 2 ? `…${endFitting(before, Math.floor(columns / 3))}` : before
  let room = columns
  let line = ""
  for (const [i, piece] of [head, ...rest].entries()) {
    const shown = clip(piece, room)
    line += i % 2 === 1 && look.color ? `\x1b[0m${paint(look, "yellow", shown)}\x1b[2m` : shown
    room -= widthOf(shown)
    if (shown !== piece || room <= 0) break
  }
  return line
}

/** As much of the end as fits. */
export function endFitting(text: string, columns: number): string {
  const signs = signsOf(text)
  let width = 0
  let from = signs.length
  while (from > 0 && width + widthOf(signs[from - 1]!) <= columns) width += widthOf(signs[--from]!)
  return signs.slice(from).join("")
}
