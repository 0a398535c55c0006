import { fileNameOf } from "../../learn/paths.ts"
import type { SymbolUse } from "../../store/knowledge/symbols.ts"
import type { Candidate, Finder } from "./finder.ts"

// Finds items in the code: uses of the current symbol or file, deprecated symbols that it uses, and documents about it.

const MAX_USES = 20
const MAX_CANDIDATES = 3

/**
 * Uses of this symbol, or importers of this file. Shown only on request, because nobody has labelled how useful they are unasked.
 */
export const findUses: Finder = ({ knowledge }, moment) => {
  if (moment.event !== "asked" && moment.event !== "watch") return []
  const { project, file, symbol: name, line } = moment
  const at = file !== undefined && line !== undefined ? knowledge.symbols.definitionAt(project, file, line) : undefined
  const [symbol] = name === undefined ? [at] : knowledge.symbols.definitionsNamed(project, name, 1)
  if (symbol)
    return knowledge.symbols
      .usesOf(project, symbol, MAX_USES)
      .filter(({ path }) => path !== file)
      .slice(0, MAX_CANDIDATES)
      .map((use) => usedBy(symbol.name, symbol.path, use))
  if (file === undefined) return []
  return knowledge.symbols.importersOf(project, file, MAX_CANDIDATES).map(
    ({ path, line }): Candidate => ({
      kind: "related_code",
      key: `file:${path}`,
      title: path,
      summary: `Imports ${fileNameOf(file)} in line ${line}.`,
      reason: `Changes to ${fileNameOf(file)} may affect this file.`,
      file: path,
      names: [fileNameOf(path)],
      features: { imports: 1 },
    }),
  )
}

function usedBy(name: string, path: string, use: SymbolUse): Candidate {
  const where = `${use.path}:${use.line}`
  const verb = use.kind === "call" ? "Calls" : "Uses"
  return {
    kind: "related_code",
    key: `use:${where}`,
    title: use.container === undefined ? where : `${use.container} in ${where}`,
    summary: `${verb} ${name}${use.resolution === "resolved" ? ` of ${fileNameOf(path)}` : ", by its name alone"}.`,
    reason: `Changes to ${name} may affect this code.`,
    file: use.path,
    symbol: use.container,
    names: [fileNameOf(use.path)],
    features: { uses: 1, resolved: use.resolution === "resolved" ? 1 : 0 },
  }
}

export const findDeprecated: Finder = ({ knowledge }, moment) => {
  const { file } = moment
  if (file === undefined) return []
  const uses = knowledge.symbols.deprecatedUsedIn(moment.project, file)
  const [first] = uses
  if (!first) return []
  const names = [...new Set(uses.map(({ symbol }) => symbol.name))]
  return [
    {
      kind: "warning",
      key: `deprecated:${file}:${names.join(",")}`,
      title: `${fileNameOf(file)} uses deprecated symbols: ${names.slice(0, MAX_CANDIDATES).join(", ")}`,
      summary: `${first.symbol.name} of ${first.symbol.path}, in line ${first.line}.`,
      reason: "The code marks it as deprecated.",
      file,
      symbol: first.symbol.name,
      names,
      features: { deprecated: Math.log1p(names.length) },
    },
  ]
}

const MAX_LENGTH = 200

/** Sections of documents about this file or symbol. The caller finds them in the search index. */
export const findDocument: Finder = ({ documents = [] }, moment) =>
  documents.map(({ ref, heading, text }): Candidate => {
    const about = moment.symbol ?? (moment.file === undefined ? "this" : fileNameOf(moment.file))
    return {
      kind: "document",
      key: `document:${ref}`,
      title: heading,
      summary: text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH)}…`,
      reason: `The section names ${about}.`,
      ref,
      names: [],
      features: {},
    }
  })
