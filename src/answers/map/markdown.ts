import { safe, safeLine } from "../../render/terminal.ts"
import type { MapItem, MapResult } from "./schema.ts"

/** Formats a result as Markdown. Every item is followed by its refs. Items are grouped by project if each has a project. */
export function markdownOf(title: string, result: MapResult, notes: string[]): string {
  const lists = Object.entries(result).filter((entry): entry is [string, MapItem[]] => isItems(entry[1]))
  const others = Object.entries(result).filter(([, value]) => !isItems(value) && value !== "")
  const lines = [
    `# ${safeLine(title)}`,
    "",
    ...others.flatMap(([name, value]) => [`${fieldLabel(name)}: ${valueText(value)}`, ""]),
    ...lists.flatMap(([name, items]) => [
      ...(lists.length > 1 ? [`## ${fieldLabel(name)}`, ""] : []),
      ...(items.length === 0 ? ["None.", ""] : sections(items, lists.length > 1 ? "###" : "##")),
    ]),
    ...notes.flatMap((note) => [`> ${safeLine(note)}`, ""]),
  ]
  return `${lines.join("\n").trimEnd()}\n`
}

function sections(items: MapItem[], mark: string): string[] {
  const byProject = items.every((item) => typeof item.project === "string" && item.project !== "")
  if (!byProject) return [...items.flatMap((item) => itemLines(item)), ""]
  const groups = Map.groupBy(items, (item) => safeLine(item.project as string))
  return [...groups].flatMap(([project, members]) => [
    `${mark} ${project}`,
    "",
    ...members.flatMap((item) => itemLines(item, "project")),
    "",
  ])
}

/** The lines of an item. The first text field is its headline; the other fields follow. */
function itemLines({ refs, ...item }: MapItem, omittedField?: string): string[] {
  const fields = Object.entries(item).filter(
    ([name, value]) => name !== omittedField && value !== "" && value !== undefined,
  )
  const first = fields.find(([, value]) => typeof value === "string") ?? fields[0]
  return [
    `- ${first ? valueText(first[1]) : ""} (${refs.map(safeLine).join(", ")})`,
    ...fields.filter((field) => field !== first).map(([name, value]) => `  - ${fieldLabel(name)}: ${valueText(value)}`),
  ]
}

function isItems(value: unknown): value is MapItem[] {
  return Array.isArray(value) && value.every((item) => Array.isArray((item as MapItem | null)?.refs))
}

function valueText(value: unknown): string {
  if (typeof value === "string") return safe(value).trim().replaceAll("\n", "\n  ")
  return Array.isArray(value) && value.every((one) => typeof one === "string")
    ? value.map(safeLine).join(", ")
    : safeLine(JSON.stringify(value))
}

function fieldLabel(name: string): string {
  const plain = safeLine(name).replaceAll("_", " ")
  return plain.charAt(0).toUpperCase() + plain.slice(1)
}
