import { posix } from "node:path"
import { DEFINITION_KINDS, type Definition } from "../../core/code.ts"
import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { knownProject } from "./rows.ts"

// Queries about the code of a project: where symbols are defined, who uses them, and how certain that is.

/** A definition and its path, relative to the project. */
export type CodeSymbol = Definition & { path: string }

const SYMBOL_COLUMNS =
  "f.path, d.name, d.kind, d.container, d.line, d.end_line, d.exported, d.deprecated, d.doc from code_definition d join code_file f on f.id = d.file_id"

/** Returns the definitions in a file, in the order of the text. */
export function definitionsIn(db: Db, project: string, path: string): CodeSymbol[] {
  const id = knownProject(db, project) ?? -1
  const sql = `select ${SYMBOL_COLUMNS} where f.project_id = ? and f.path = ? order by d.seq`
  return rowQuery(db, sql, SYMBOL_ROW).all(id, path).map(symbolOf)
}

/** Returns the innermost definition that contains a line. */
export function definitionAt(db: Db, project: string, path: string, line: number): CodeSymbol | undefined {
  const id = knownProject(db, project) ?? -1
  const row = rowQuery(
    db,
    `select ${SYMBOL_COLUMNS} where f.project_id = ? and f.path = ? and d.line <= ? and d.end_line >= ?
       order by d.end_line - d.line, d.seq desc limit 1`,
    SYMBOL_ROW,
  ).get(id, path, line, line)
  return row && symbolOf(row)
}

/** Returns the definitions with this name: exported ones first, each group sorted by path. */
export function definitionsNamed(db: Db, project: string, name: string, limit: number): CodeSymbol[] {
  const id = knownProject(db, project) ?? -1
  const sql = `select ${SYMBOL_COLUMNS} where d.name = ? and f.project_id = ? order by d.exported = 0, f.path, d.seq limit ?`
  return rowQuery(db, sql, SYMBOL_ROW).all(name, id, limit).map(symbolOf)
}

/**
 * How a use was found. `resolved`: through an import, or in the same file, class or package. `by_name`: only the name matches.
 */
export type Resolution = "resolved" | "by_name"
export type SymbolUse = {
  path: string
  container?: string
  line: number
  kind: "call" | "reference"
  resolution: Resolution
}

/**
 * Returns the uses of a symbol: resolved ones first, and calls first among these. A use through a re-export counts as resolved.
 */
export function usesOf(
  db: Db,
  project: string,
  symbol: Pick<CodeSymbol, "path" | "name" | "kind" | "exported">,
  limit: number,
): SymbolUse[] {
  const id = knownProject(db, project) ?? -1
  const file = rowQuery(db, "select id, folder, language from code_file where project_id = ? and path = ?", {
    id: "integer",
    folder: "text",
    language: "text",
  }).get(id, symbol.path)
  if (!file) return []
  const isGo = file.language === "go"
  const resolvedUses: UseRow[] = []
  const selectInFile = rowQuery(
    db,
    `select ${USES_WITH_FILES} where u.file_id = ? and u.via = -1 and u.name = ? order by u.line limit ?`,
    USE_ROW,
  )
  resolvedUses.push(...selectInFile.all(file.id, symbol.name, limit))
  const selectViaImport = rowQuery(
    db,
    `select ${USES_WITH_FILES} join code_import i on i.file_id = u.file_id and i.seq = u.via
     where u.name = ? and f.project_id = ? and i.target = ? order by f.path, u.line limit ?`,
    USE_ROW,
  )
  for (const { target, name } of importableNames(db, id, isGo ? `${file.folder}/` : symbol.path, symbol))
    resolvedUses.push(...selectViaImport.all(name, id, target, limit))
  if (isGo) resolvedUses.push(...rowQuery(db, SELECT_SAME_PACKAGE, USE_ROW).all(symbol.name, id, file.folder, limit))
  const plainFlag = symbol.kind === "method" ? 0 : 1
  const selectByName = rowQuery(
    db,
    `select ${USES_WITH_FILES} where u.name = ? and u.via is null and u.is_plain = ? and f.project_id = ?
       and (f.language = ? or (f.language in (${SCRIPT_LANGUAGES}) and ? in (${SCRIPT_LANGUAGES}))) and not (f.language = 'go' and f.folder = ? and u.is_plain)
     order by f.path, u.line limit ?`,
    USE_ROW,
  )
  const namedUses = selectByName.all(symbol.name, plainFlag, id, file.language, file.language, file.folder, limit)
  return [...toUses(resolvedUses, "resolved"), ...toUses(namedUses, "by_name")].slice(0, limit)
}

const SCRIPT_LANGUAGES = "'typescript', 'tsx', 'javascript'"
const USES_WITH_FILES = "f.path, u.container, u.line, u.is_call from code_use u join code_file f on f.id = u.file_id"
/**
 * Matches uses in the same Go package: a name that a Go file uses without a package, and does not define, is defined by another
 * file of its package.
 */
const SELECT_SAME_PACKAGE = `select ${USES_WITH_FILES} where u.name = ? and f.project_id = ? and f.folder = ? and f.language = 'go'
  and u.via is null and u.is_plain order by f.path, u.line limit ?`

const MAX_REEXPORTS = 5
const MAX_NAMES = 50

/** Returns the modules and names by which other files can import a symbol: from its own file, or from one that re-exports it. */
function importableNames(
  db: Db,
  project: number,
  target: string,
  symbol: Pick<CodeSymbol, "name" | "exported">,
): { target: string; name: string }[] {
  const names = [{ target, name: symbol.name, depth: 0 }]
  if (symbol.exported === "default") names.push({ target, name: "default", depth: 0 })
  const selectReexports = rowQuery(
    db,
    `select f.path as target, case when i.name = '*' then ? else i.local end as name
     from code_import i join code_file f on f.id = i.file_id
     where i.target = ? and f.project_id = ? and (i.name = ? or (i.name = '*' and i.local = '*'))
       and (i.reexport or f.path like '%\\_\\_init\\_\\_.py' escape '\\')`,
    { target: "text", name: "text" },
  )
  for (let i = 0; i < names.length && names.length < MAX_NAMES; i++) {
    const module = names[i]!
    if (module.depth >= MAX_REEXPORTS) continue
    for (const row of selectReexports.all(module.name, module.target, project, module.name))
      if (!names.some((known) => known.target === row.target && known.name === row.name))
        names.push({ ...row, depth: module.depth + 1 })
  }
  return names
}

/** Returns the files that import this one, by path; for Go, the files that import its package. */
export function importersOf(db: Db, project: string, path: string, limit: number): { path: string; line: number }[] {
  const id = knownProject(db, project) ?? -1
  const target = path.endsWith(".go") ? `${posix.dirname(path)}/` : path
  return rowQuery(
    db,
    `select f.path, min(i.line) as line from code_import i join code_file f on f.id = i.file_id
       where i.target = ? and f.project_id = ? group by f.path order by f.path limit ?`,
    { path: "text", line: "integer" },
  ).all(target, id, limit)
}

/** Returns the files with code in this folder, by path. */
export function codeFilesIn(db: Db, project: string, folder: string): string[] {
  const sql = "select path from code_file where project_id = ? and folder = ? order by path"
  return valueQuery(db, sql, "text").all(knownProject(db, project) ?? -1, folder)
}

/** Returns the project's files that this one imports, in order. Go packages are named by their folder with a trailing slash. */
export function importsIn(db: Db, project: string, path: string): { target: string; line: number }[] {
  const id = knownProject(db, project) ?? -1
  return rowQuery(
    db,
    `select i.target, min(i.line) as line from code_import i join code_file f on f.id = i.file_id
       where f.project_id = ? and f.path = ? and i.target is not null group by i.target order by line`,
    { target: "text", line: "integer" },
  ).all(id, path)
}

/**
 * A use of one of the project's deprecated symbols in a file. Only resolved uses count, because the name alone would be a guess.
 */
export type DeprecatedUse = { symbol: CodeSymbol; line: number; container?: string }

export function deprecatedUsedIn(db: Db, project: string, path: string): DeprecatedUse[] {
  const id = knownProject(db, project) ?? -1
  const selectDeprecated = db.prepare(
    "select 1 from code_definition d join code_file f on f.id = d.file_id where d.deprecated is not null and f.project_id = ? limit 1",
  )
  // Most projects deprecate nothing; then no use needs to be checked.
  if (selectDeprecated.get(id) === undefined) return []
  return usesIn(db, id, path).flatMap(({ symbol, line, container }) =>
    symbol?.deprecated === undefined || symbol.path === path ? [] : [{ symbol, line, container }],
  )
}

/** A symbol of the project that a definition calls. `line` is the first call. */
export type SymbolCall = { symbol: CodeSymbol; line: number; resolution: Resolution }

/**
 * Returns what a definition calls, in the order of the text, each symbol once. A call of which only the name is known counts if the
 * project has a single definition of that name, and the call is one of a method or of a function as that is. Calls of other code,
 * such as libraries, are left out.
 */
export function callsIn(db: Db, project: string, { path, line, end_line }: CodeSymbol): SymbolCall[] {
  const id = knownProject(db, project) ?? -1
  const calls = usesIn(db, id, path).filter((use) => use.is_call && use.line >= line && use.line <= end_line)
  const found = new Map<string, SymbolCall>()
  for (const call of calls) {
    const named = call.symbol || call.via !== null ? [] : definitionsNamed(db, project, call.name, 2)
    const isLike = named.length === 1 && call.is_plain === (named[0]!.kind !== "method")
    const symbol = call.symbol ?? (isLike ? named[0] : undefined)
    const key = symbol && `${symbol.path}:${symbol.line}`
    if (symbol && key !== undefined && !found.has(key))
      found.set(key, { symbol, line: call.line, resolution: call.symbol ? "resolved" : "by_name" })
  }
  return [...found.values()]
}

/** The uses in a file, each with its definition if that is known for certain. */
function usesIn(db: Db, project: number, path: string) {
  const uses = rowQuery(
    db,
    `select u.name, u.container, u.line, u.is_call, u.via, u.is_plain, i.target, f.folder, f.language
       from code_file f join code_use u on u.file_id = f.id left join code_import i on i.file_id = f.id and i.seq = u.via
       where f.project_id = ? and f.path = ? order by u.line, u.seq`,
    {
      name: "text",
      container: "text?",
      line: "integer",
      is_call: "integer",
      via: "integer?",
      is_plain: "integer",
      target: "text?",
      folder: "text",
      language: "text",
    },
  ).all(project, path)
  const lookups: Lookups = { known: new Map(), lookupsLeft: MAX_LOOKUPS }
  return uses.map(({ name, container, line, is_call, via, is_plain, target, folder, language }) => {
    const module = via === -1 ? path : via === null && is_plain && language === "go" ? `${folder}/` : target
    const symbol = module === null ? undefined : resolveName(db, project, module, name, lookups)
    return {
      name,
      line,
      is_call: is_call === 1,
      is_plain: is_plain === 1,
      via,
      container: container ?? undefined,
      symbol,
    }
  })
}

/** The maximum number of re-exporting modules to look up for one file. */
const MAX_LOOKUPS = 1_000

type Lookups = {
  /** Names that were looked up before. */
  known: Map<string, CodeSymbol | undefined>
  /** The number of re-exporting modules that may still be looked up. */
  lookupsLeft: number
}

function resolveName(db: Db, project: number, target: string, name: string, lookups: Lookups): CodeSymbol | undefined {
  const key = `${target}\n${name}`
  if (!lookups.known.has(key)) lookups.known.set(key, definitionOf(db, project, target, name, 0, lookups, new Map()))
  return lookups.known.get(key)
}

/**
 * Finds the definition that a name refers to for files that import it from a module of the project. Modules may re-export each
 * other, so each is looked up only once, or again if it is reached in fewer steps than before, because then more steps are left
 * to search beyond it.
 */
function definitionOf(
  db: Db,
  project: number,
  target: string,
  name: string,
  depth: number,
  lookups: Lookups,
  visited: Map<string, number>,
): CodeSymbol | undefined {
  visited.set(`${target}\n${name}`, depth)
  const isFolder = target.endsWith("/")
  const modulePath = isFolder ? target.slice(0, -1) : target
  const row = rowQuery(
    db,
    `select ${SYMBOL_COLUMNS} where f.project_id = ? and ((? and f.folder = ?) or (not ? and f.path = ?))
         and (d.name = ? or (? = 'default' and d.exported = 2)) order by d.deprecated is null, d.seq limit 1`,
    SYMBOL_ROW,
  ).get(project, isFolder ? 1 : 0, modulePath, isFolder ? 1 : 0, modulePath, name, name)
  if (row || isFolder || depth >= MAX_REEXPORTS) return row && symbolOf(row)
  const reexports = rowQuery(
    db,
    `select i.target, case when i.name = '*' then ? else i.name end as name
       from code_import i join code_file f on f.id = i.file_id
       where f.project_id = ? and f.path = ? and i.target is not null and (i.local = ? or (i.name = '*' and i.local = '*')) limit ?`,
    { target: "text", name: "text" },
  ).all(name, project, target, name, MAX_NAMES)
  for (const reexport of reexports) {
    const before = visited.get(`${reexport.target}\n${reexport.name}`)
    if (before !== undefined && before <= depth + 1) continue
    if (lookups.lookupsLeft-- <= 0) return undefined
    const definition = definitionOf(db, project, reexport.target, reexport.name, depth + 1, lookups, visited)
    if (definition) return definition
  }
  return undefined
}

type UseRow = RowOf<typeof USE_ROW>
const USE_ROW = { path: "text", container: "text?", line: "integer", is_call: "integer" } as const

function toUses(rows: UseRow[], resolution: Resolution): SymbolUse[] {
  return rows
    .map(({ path, container, line, is_call }): SymbolUse => {
      const kind = is_call ? "call" : "reference"
      return { path, container: container ?? undefined, line, kind, resolution }
    })
    .sort((a, b) => (a.kind === b.kind ? 0 : a.kind === "call" ? -1 : 1))
}

type SymbolRow = RowOf<typeof SYMBOL_ROW>
const SYMBOL_ROW = {
  path: "text",
  name: "text",
  kind: DEFINITION_KINDS,
  container: "text?",
  line: "integer",
  end_line: "integer",
  exported: "integer",
  deprecated: "text?",
  doc: "text?",
} as const

function symbolOf({ container, exported, deprecated, doc, ...row }: SymbolRow): CodeSymbol {
  return {
    ...row,
    container: container ?? undefined,
    exported: exported > 0 ? (exported === 2 ? ("default" as const) : (true as const)) : undefined,
    deprecated: deprecated ?? undefined,
    doc: doc ?? undefined,
  }
}
