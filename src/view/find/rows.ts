import { isDexError } from "../../core/error.ts"
import { conversationRefOf, formatRef, parseCompleteRef } from "../../core/ref.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many, projectNames, shortDate, shortPath, when } from "../../render/words.ts"
import type { Dex } from "../../tools/context.ts"
import { agentNamed } from "../../tools/resolve.ts"
import type { Addresses } from "../page.ts"

/** A conversation or a document that was found. */
export type ResultRow = {
  id: string
  title: string
  source: string
  project: string
  date: string
  kind?: string
  message_count?: number
  superseded?: boolean
  /** The number of the message that matched. */
  message_index?: number
  /** Matches are marked as `**word**`. */
  snippet?: string
  more_matches?: number
  score_final?: number
  score_parts?: { name: string; value: number }[]
}

export async function rowsHtml(dex: Dex, rows: readonly ResultRow[], to: Addresses, first: number): Promise<Html> {
  const names = await agentNames(
    dex,
    rows.map(({ source }) => source),
  )
  const nameOf = projectNames(rows.map(({ project }) => project))
  return html`<ol class="rows" start="${first}">${rows.map((row) => rowHtml(row, { dex, agent: names.get(row.source)!, nameOf, to }))}</ol>`
}

/** The names of the agents, by source. */
export async function agentNames(dex: Dex, sources: readonly string[]): Promise<Map<string, string>> {
  const entries = [...new Set(sources)].map(async (source) => [source, await agentName(dex, source)] as const)
  return new Map(await Promise.all(entries))
}

async function agentName(dex: Dex, source: string): Promise<string> {
  if (source === "docs") return "Document"
  try {
    return (await agentNamed(dex, source))?.name ?? source
  } catch (error) {
    if (!isDexError(error)) throw error
    return source
  }
}

type RowLook = { dex: Dex; agent: string; nameOf: (project: string) => string; to: Addresses }

function rowHtml(row: ResultRow, { dex, agent, nameOf, to }: RowLook): Html {
  const { title, project, date, message_count, snippet = "", score_parts, score_final = 0 } = row
  const isDocument = row.kind === "document"
  const facts = [
    message_count !== undefined && many(message_count, isDocument ? "section" : "message"),
    (row.more_matches ?? 0) > 0 && `${many(row.more_matches!, "more match", "more matches")}`,
    row.kind !== undefined && !["person", "document"].includes(row.kind) && row.kind,
    row.superseded && "kept by dex only",
  ].filter((fact) => typeof fact === "string")
  return html`<li class="row" tabindex="-1"><a class="title" href="${addressOf(row, to)}">${title}</a>${snippet !== "" && html`<p class="snippet">${markedHtml(snippet)}</p>`}<div class="row-end"><p class="line"><span class="agent">${agent}</span><span title="${shortPath(project, dex.machine.home)}">${nameOf(project)}</span><time datetime="${date}" title="${when(date)}">${shortDate(date, dex.now())}</time>${facts.map((fact) => html`<span>${fact}</span>`)}</p>${score_parts && html`<details class="why"><summary>why it is here</summary>${scoreTable(score_parts, score_final)}</details>`}</div></li>`
}

/** The address of the message that matched, or of the beginning of the conversation. */
function addressOf({ id, message_index, snippet = "" }: ResultRow, to: Addresses): string {
  const ref = parseCompleteRef(id)
  const conversation = ref ? formatRef(conversationRefOf(ref)) : id
  return to.read(conversation, snippet === "" || !message_index || message_index === 1 ? undefined : message_index)
}

/** Marks the matches of a snippet, which are between double asterisks. The snippet contains no others. */
function markedHtml(snippet: string): Html[] {
  return snippet.split("**").map((text, i) => (i % 2 === 1 ? html`<mark>${text}</mark>` : html`${text}`))
}

/** The meaning of each part of a score. */
const SCORE_PART_LABELS: Record<string, string> = {
  words: "the words; rarer words count more",
  common: "very common words",
  pairs: "adjacent words, as you typed them",
  neighbours: "hits in neighbouring messages",
  others: "more messages of this conversation",
  title: "the words of its title",
  vector: "similar meaning",
  rerank: "a model's ranking",
}

function scoreTable(parts: readonly { name: string; value: number }[], sum: number): Html {
  const rows = [...sumByName(parts)].map(
    ([name, value]) =>
      html`<tr><th scope="row">${name}</th><td class="says">${SCORE_PART_LABELS[name] ?? ""}</td><td class="number">${value.toFixed(2)}</td></tr>`,
  )
  return html`<table class="score"><caption class="unseen">What the score is made of</caption><tbody>${rows}</tbody><tfoot><tr><th scope="row">score</th><td class="says"></td><td class="number">${sum.toFixed(2)}</td></tr></tfoot></table>`
}

/** Adds up parts with the same name, such as several words or neighbours. */
function sumByName(parts: readonly { name: string; value: number }[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { name, value } of parts) sums.set(name, (sums.get(name) ?? 0) + value)
  return sums
}
