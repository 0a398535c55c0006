import { isDistinct, quoteNaming } from "../../core/prose.ts"
import type { Moment } from "../../core/suggestion.ts"
import { fileNameOf, folderOf, isTest } from "../../learn/paths.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { CodeSymbol, SymbolUse } from "../../store/knowledge/symbols.ts"
import type { Candidate, Finder } from "./finder.ts"

// Finds items in the code: uses of the current symbol or file, its neighbours, deprecated symbols that it uses, and documents about it.

const MAX_USES = 20
const MAX_CANDIDATES = 3
/** On request, uses are counted. More than this many are not. */
const MAX_COUNTED_USES = 500

/** The symbol that the moment names, or the one at its line. */
export function symbolOf(knowledge: Knowledge, { project, file, symbol: name, line }: Moment): CodeSymbol | undefined {
  const at = file !== undefined && line !== undefined ? knowledge.symbols.definitionAt(project, file, line) : undefined
  if (name === undefined || at?.name === name) return at
  const named = knowledge.symbols.definitionsNamed(project, name, MAX_USES)
  return named.find(({ path }) => path === file) ?? named[0]
}

/**
 * Uses of this symbol, or importers of this file. Shown only on request, because nobody has labelled yet whether they help
 * unasked. On request, code comes before tests, and all tests share a row.
 */
export const findUses: Finder = ({ knowledge }, moment) => {
  const isRequested = moment.event === "asked"
  if (!isRequested && moment.event !== "watch") return []
  const { project, file } = moment
  const symbol = symbolOf(knowledge, moment)
  if (symbol) {
    const uses = knowledge.symbols
      .usesOf(project, symbol, isRequested ? MAX_COUNTED_USES : MAX_USES)
      .filter(({ path }) => path !== file)
    if (!isRequested) return uses.slice(0, MAX_CANDIDATES).map((use) => usedBy(symbol.name, symbol.path, use))
    if (uses.length > 0 || file === undefined) return usersOf(symbol, uses)
  }
  if (file === undefined) return []
  const importers = knowledge.symbols.importersOf(project, file, isRequested ? MAX_COUNTED_USES : MAX_CANDIDATES)
  if (!isRequested) return importers.map((importer) => importedBy(file, importer))
  const [tests, code] = separateTests(nearestFirst(file, importers))
  return [
    ...code.slice(0, MAX_CANDIDATES).map((importer) => importedBy(file, importer, code.length)),
    ...testsRow(fileNameOf(file), "import", tests),
  ]
}

/** The files that use a symbol, one row for each, and one row for all tests. */
function usersOf({ name, path }: CodeSymbol, uses: SymbolUse[]): Candidate[] {
  const nearest = nearestFirst(path, uses)
  const rank = ({ resolution, kind }: SymbolUse) => (resolution === "resolved" ? 0 : 2) + (kind === "call" ? 0 : 1)
  const [tests, code] = separateTests(nearest.sort((a, b) => rank(a) - rank(b)))
  const byFile = [...Map.groupBy(code, (use) => use.path).values()]
  return [
    ...byFile.slice(0, MAX_CANDIDATES).map((own) => usedBy(name, path, own[0]!, own.length, byFile.length)),
    ...testsRow(name, tests.some(({ kind }) => kind === "call") ? "call" : "use", tests),
  ]
}

/** First the files that are nearest to this one in the tree of folders. */
function nearestFirst<T extends { path: string }>(file: string, all: T[]): T[] {
  const folders = folderOf(file).split("/")
  const shared = ({ path }: T) => {
    const own = folderOf(path).split("/")
    const end = folders.findIndex((folder, i) => folder !== own[i])
    return end === -1 ? folders.length : end
  }
  return all.toSorted((a, b) => shared(b) - shared(a))
}

function separateTests<T extends { path: string }>(all: T[]): [tests: T[], code: T[]] {
  return [all.filter(({ path }) => isTest(path)), all.filter(({ path }) => !isTest(path))]
}

/** Keys of the row for all tests begin with this prefix. */
export const TESTS_PREFIX = "tests:"

function testsRow(name: string, verb: "call" | "use" | "import", uses: { path: string }[]): Candidate[] {
  const paths = [...new Set(uses.map(({ path }) => path))]
  if (paths.length === 0) return []
  const shown = paths.slice(0, MAX_CANDIDATES).map(fileNameOf)
  const moreText = paths.length > shown.length ? ` and ${paths.length - shown.length} more` : ""
  const isOne = paths.length === 1
  return [
    {
      kind: "related_code",
      key: `${TESTS_PREFIX}${name}`,
      title: `${isOne ? `1 test ${verb}s` : `${paths.length} tests ${verb}`} ${name}: ${shown.join(", ")}${moreText}`,
      summary: `${paths.slice(0, MAX_CANDIDATES).join(", ")}${moreText}`,
      reason: `${isOne ? "It shows" : "They show"} whether a change to ${name} breaks something.`,
      file: isOne ? paths[0] : undefined,
      names: shown,
      features: {},
    },
  ]
}

function importedBy(file: string, { path, line }: { path: string; line: number }, of = 1): Candidate {
  return {
    kind: "related_code",
    key: `file:${path}`,
    title: path,
    summary: `Imports ${fileNameOf(file)} in line ${line}.`,
    reason: `Changes to ${fileNameOf(file)} may affect this file${othersText(of, "import it")}.`,
    file: path,
    names: [fileNameOf(path)],
    features: { imports: 1 },
  }
}

function usedBy(name: string, path: string, use: SymbolUse, inFile = 1, of = 1): Candidate {
  const location = `${use.path}:${use.line}`
  const verb = use.kind === "call" ? "Calls" : "Uses"
  const places = inFile > 1 ? `, in ${inFile} places in this file` : ""
  return {
    kind: "related_code",
    key: `use:${location}`,
    title: use.container === undefined ? location : `${use.container} in ${location}`,
    summary: `${verb} ${name}${use.resolution === "resolved" ? ` of ${fileNameOf(path)}` : " (only the name matches)"}${places}.`,
    reason: `Changes to ${name} may affect this code${othersText(of, "use it")}.`,
    file: use.path,
    symbol: use.container,
    names: [fileNameOf(use.path)],
    features: { uses: 1, resolved: use.resolution === "resolved" ? 1 : 0 },
  }
}

function othersText(of: number, verb: "import it" | "use it"): string {
  if (of === 1) return ""
  return `, and ${of - 1} other ${of === 2 ? `file that ${verb.replace(" ", "s ")}` : `files that ${verb}`}`
}

/**
 * A file that this one imports, or one that imports it or calls the symbol. `relation` completes "which …", and `effect` says why a
 * change of it matters.
 */
export type Neighbour = { path: string; relation: string; effect: string }

const MAX_NEIGHBOURS = 500
const MAX_DEFINITIONS = 30

/**
 * The files next to the moment's file or symbol in the graph of imports and calls, each once: users of the symbol, then the files
 * that this one imports, and those that import or call it.
 */
export function neighboursOf(knowledge: Knowledge, moment: Moment): Neighbour[] {
  const { project, file } = moment
  const { symbols } = knowledge
  const symbol = symbolOf(knowledge, moment)
  const callersOf = (called: CodeSymbol) =>
    symbols
      .usesOf(project, called, MAX_COUNTED_USES)
      .filter(({ resolution }) => resolution === "resolved")
      .map(({ path, kind }) => ({
        path,
        relation: `${kind === "call" ? "calls" : "uses"} ${called.name}`,
        effect: `It depends on ${called.name}.`,
      }))
  const found: Neighbour[] = symbol ? callersOf(symbol) : []
  if (symbol && file === undefined)
    found.push({
      path: symbol.path,
      relation: `defines ${symbol.name}`,
      effect: `The commit may have changed ${symbol.name}.`,
    })
  if (file !== undefined) {
    const name = fileNameOf(file)
    for (const { target } of symbols.importsIn(project, file)) {
      const paths = target.endsWith("/") ? symbols.codeFilesIn(project, target.slice(0, -1)) : [target]
      found.push(...paths.map((path) => ({ path, relation: `${name} imports`, effect: `${name} depends on it.` })))
    }
    const importers = symbols.importersOf(project, file, MAX_NEIGHBOURS)
    found.push(
      ...importers.map(({ path }) => ({ path, relation: `imports ${name}`, effect: `It depends on ${name}.` })),
    )
    // A file of the same package calls this one without importing it.
    found.push(...symbols.definitionsIn(project, file).slice(0, MAX_DEFINITIONS).flatMap(callersOf))
  }
  const paths = new Set([file])
  return found.filter(({ path }) => !paths.has(path) && paths.add(path)).slice(0, MAX_NEIGHBOURS)
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

/** The names by which a text can mean what the moment is about: that of the symbol, or those of the file. */
export function namesOf({ symbol, file }: Pick<Moment, "symbol" | "file">): string[] {
  if (symbol !== undefined) return [symbol]
  if (file === undefined) return []
  const name = fileNameOf(file)
  const [stem = ""] = name.split(".")
  return isDistinct(stem) ? [name, stem] : [name]
}

const MAX_SECTIONS = 2

/** Sections of documents that name this symbol or file, with the sentence. The caller finds them in the search index. */
export const findDocument: Finder = ({ documents = [] }, moment) =>
  documents
    .flatMap((section): Candidate[] => {
      const named = quoteNaming(section.text, namesOf(moment))
      if (named === undefined) return []
      const heading = section.headings.at(-1)
      return [
        {
          kind: "document",
          key: `document:${section.ref}`,
          title: heading === undefined ? section.document : `${heading} (${section.document})`,
          summary: `"${named.sentence}"`,
          reason: `This section names ${named.name}.`,
          ref: section.ref,
          names: [],
          features: {},
        },
      ]
    })
    .slice(0, MAX_SECTIONS)
