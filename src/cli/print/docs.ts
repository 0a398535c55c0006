import { formatCount } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { clip, padEnd, paint, safe, safeLine } from "../../render/terminal.ts"
import { many, shortPath, when } from "../../render/words.ts"
import type { docs } from "../../tools/docs/docs.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"

type Output = OutputOf<typeof docs>

const MAX_SKIPPED = 5

export function printDocs(output: Output, context: PrintContext): PrintedOutput {
  const { lines, notes = [], ...rest } = printPart(output, context)
  return { lines, notes: [...notes, ...listedNotes(output)], ...rest }
}

/** Notes on the repository's own list: its entries, those that are ignored, and what to do. */
export function listedNotes(output: Output): string[] {
  const { listed } = output
  if (!listed) return []
  const { agreed, paths, offered, refused } = listed
  return [
    ...(agreed || paths.length === 0
      ? []
      : [
          `This repository names documents (.dex.json): ${paths.map(safeLine).join(", ")}. ${output.asked ? "Nothing was added yet: add --yes." : "To add them: dex docs add"}`,
        ]),
    ...offered.map(
      (one) => `It also names ${safeLine(one)}, which is not added with them. To add it: dex docs add ${safeLine(one)}`,
    ),
    ...refused.map(
      ({ entry, reason }) => `In its list, ${safeLine(entry) || "documents"} is ignored: ${safeLine(reason)}.`,
    ),
  ]
}

function printPart(output: Output, context: PrintContext): PrintedOutput {
  if (output.listed && !output.collections && !output.synced) return { lines: [] }
  if (output.collections) return printCollections(output.collections, context)
  if (output.documents) return printDocuments(output.documents, context)
  if (output.synced) return printSynced(output.synced)
  if (output.document) return printDocument(output as Required<Pick<Output, "document" | "sections">> & Output, context)
  return { lines: [`${safeLine(output.removed ?? "")} is no longer searched. Its files were not touched.`], notes: [] }
}

function printCollections(
  collections: NonNullable<Output["collections"]>,
  { terminal, home }: PrintContext,
): PrintedOutput {
  if (collections.length === 0) return { lines: [], notes: ["No documents yet. Add some: dex docs add ./docs"] }
  const width = Math.max(...collections.map(({ name }) => name.length)) + 2
  const lines = collections.flatMap(({ name, origin, project, version, documents, sections, synced_at, problems }) => [
    `${paint(terminal, "cyan", padEnd(safeLine(name), width))}${many(documents, "document")}, ${many(sections, "section")}${synced_at ? `, read ${when(synced_at)}` : ""}`,
    `  ${clip(`${shortPath(safeLine(origin), home)}${version ? ` ${version.slice(0, 12)}` : ""}; ${project === undefined ? "for every project" : `for ${shortPath(safeLine(project), home)}`}`, terminal.columns - 2)}`,
    ...(problems.length > 0
      ? [`  ${many(problems.length, "file")} not read: ${clip(safeLine(problems[0]!), terminal.columns - 24)}`]
      : []),
  ])
  return { lines, notes: ["To see one: dex docs list NAME. To update them: dex docs sync"] }
}

function printDocuments(documents: NonNullable<Output["documents"]>, { terminal }: PrintContext): PrintedOutput {
  const lines = documents.map(
    ({ id, title, sections, estimated_tokens }, i) =>
      `${paint(terminal, "cyan", String(i + 1).padStart(4))}  ${clip(`${safeLine(id)}  ${safeLine(title)}  (${many(sections, "section")}, ${formatCount(estimated_tokens)} tokens)`, terminal.columns - 6)}`,
  )
  const notes =
    documents.length === 0
      ? ["This collection has no documents."]
      : [`${many(documents.length, "document")}. Read one: dex docs outline 1`]
  return { lines, notes, listing: documents.map(({ id }) => id) }
}

function printDocument(
  {
    document,
    sections,
    truncated,
  }: Output & { document: NonNullable<Output["document"]>; sections: NonNullable<Output["sections"]> },
  { terminal, home }: PrintContext,
): PrintedOutput {
  const hasContent = sections.some(({ content }) => content !== undefined)
  const head = [
    paint(terminal, "bold", clip(safeLine(document.title), terminal.columns)),
    paint(
      terminal,
      "dim",
      clip(`${safeLine(document.id)}  ${shortPath(safeLine(document.path), home)}`, terminal.columns),
    ),
  ]
  if (hasContent)
    return {
      lines: [...head, ...sections.flatMap(({ content }) => ["", ...safe(content ?? "").split("\n")])],
      notes: truncated ? [truncated] : [],
    }
  const lines = sections.map(({ headings, first_line, last_line, estimated_tokens }) => {
    const indent = "  ".repeat(Math.max(0, headings.length - 1))
    const size = `${first_line}–${last_line}, ${formatCount(estimated_tokens)} tokens`
    return clip(`${indent}${safeLine(headings.at(-1) ?? "(before the first heading)")}  (${size})`, terminal.columns)
  })
  const [first] = sections
  return {
    lines: [...head, ...lines],
    notes: first ? [`Read a section: dex docs show '${safeLine(first.id)}'`] : [],
    listing: sections.map(({ id }) => id),
  }
}

function printSynced(results: NonNullable<Output["synced"]>): PrintedOutput {
  const lines = results.map(
    ({ name, documents, changed, removed }) =>
      `${safeLine(name)}: ${many(documents, "document")}, ${changed} new or changed${removed > 0 ? `, ${removed} removed` : ""}.`,
  )
  const notes = results.flatMap(({ skipped, complete, name }) => [
    ...skipped.slice(0, MAX_SKIPPED).map(({ path, reason }) => `Not read: ${safeLine(path)}: ${safeLine(reason)}`),
    ...(skipped.length > MAX_SKIPPED ? [`… and ${many(skipped.length - MAX_SKIPPED, "more file")} not read.`] : []),
    ...(complete ? [] : [`${safeLine(name)} has not been read completely. \`dex docs sync\` continues.`]),
  ])
  return { lines, notes: [...notes, ...(results.length > 0 ? ["Search them: dex search WORDS --in docs"] : [])] }
}
