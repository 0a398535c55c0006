import type { Addition, Bin, TomlAddition, TomlValue, WantedFile } from "../agents/kit/wiring.ts"
import { byName } from "../core/by-name.ts"
import type { SourceId } from "../core/conversation.ts"
import { EditProblem, newlineOf, type TextEdit, undoEdits } from "./edit.ts"
import { addToJson, applyEdits, findInJson, isEmptyJson, type Presence, removeFromJson } from "./edit-json.ts"
import { expectWritable, readEditable, sha256 } from "./files.ts"
import type { AdditionsRecord, FileAdditions } from "./record.ts"
import { type TomlStatement, tomlStatements } from "./toml-lines.ts"

/** The planned change to one file. Nothing is written yet. */
export type FilePlan = {
  agent: SourceId | "dex"
  path: string
  /** Undefined if there is no file, or if there is a problem. */
  before: string | undefined
  /** Undefined if the file will be removed, or if there is a problem. */
  after: string | undefined
  /** The new entry in the record for this file; undefined removes it. */
  added: Omit<FileAdditions, "made_folders" | "backup"> | undefined
  executable: boolean
  /** Why the file cannot be changed. */
  problem?: string
  note?: string
  /** When removing: true if the remaining content still starts dex's launcher. */
  needs_launcher?: boolean
}

/** Plans how to add dex's additions to a file. A file that already contains all of them stays unchanged. */
export function planAdding(
  agent: SourceId | "dex",
  { path, additions }: WantedFile,
  record: AdditionsRecord,
): FilePlan {
  const executable = additions.some((addition) => addition.type === "file" && addition.executable === true)
  return createPlan({ agent, path, executable }, () => {
    const before = readEditable(path)
    const previous = record[path]
    const isAsRecorded =
      previous !== undefined && JSON.stringify(previous.additions.map(withoutMade)) === JSON.stringify(additions)
    if (
      before !== undefined &&
      (previous === undefined || isAsRecorded) &&
      additions.every((one) => hasAddition(before, one))
    )
      return { before, after: before, added: previous ?? adoptEntries(agent, additions) }

    // The launchers belong to dex, so their content is replaced.
    const base = agent === "dex" ? undefined : previous ? withoutAdditions(before, previous).text : before
    const { after, edits, recorded } = withAdditions(base, additions)
    if (after !== before) expectWritable(path)
    const added = {
      agent,
      existed: base !== undefined,
      before_sha256: sha256(base ?? ""),
      after_sha256: sha256(after),
      edits,
      additions: recorded,
    }
    return { before, after, added }
  })
}

/** Plans how to remove the recorded additions from a file. Those that were changed since stay, with a note. */
export function planRemoving(path: string, added: FileAdditions, bin: Bin): FilePlan {
  return createPlan({ agent: added.agent, path, executable: false }, () => {
    const before = readEditable(path)
    // The launchers belong to dex, so they are removed even if they were changed.
    const { text: after, remaining } =
      added.agent === "dex" ? { text: undefined, remaining: [] } : withoutAdditions(before, added)
    if (after !== before) expectWritable(path)
    const isOwnFile = added.additions.some(({ type }) => type === "file")
    const needsLauncher = !isOwnFile && remaining.length > 0 && after !== undefined && namesLauncher(after, bin)
    const notes = [
      ...(before === undefined ? ["It was already gone."] : []),
      ...remaining.map(
        (what) => `${what} was changed since dex wrote it, so it was not removed. Delete it there yourself.`,
      ),
    ]
    return {
      before,
      after,
      added: needsLauncher ? added : undefined,
      needs_launcher: needsLauncher,
      note: notes.length > 0 ? notes.join(" ") : undefined,
    }
  })
}

/** Plans to leave a file as it is, with this record of who uses it. */
export function planKeeping(path: string, added: FileAdditions): FilePlan {
  return createPlan({ agent: added.agent, path, executable: false }, () => {
    const text = readEditable(path)
    return { before: text, after: text, added }
  })
}

function createPlan(
  about: Pick<FilePlan, "agent" | "path" | "executable">,
  work: () => Pick<FilePlan, "before" | "after" | "added" | "note" | "needs_launcher">,
): FilePlan {
  try {
    return { ...about, ...work() }
  } catch (error) {
    if (!(error instanceof EditProblem)) throw error
    return {
      ...about,
      before: undefined,
      after: undefined,
      added: undefined,
      problem: `${about.path} ${error.message}.`,
    }
  }
}

/** Adopts entries that somebody else wrote exactly as dex would have. From now on, dex may remove them. */
function adoptEntries(agent: SourceId | "dex", additions: Addition[]): FilePlan["added"] {
  const recorded = additions.map((addition) => ({ ...addition, made: "path" in addition ? addition.path.length : 0 }))
  // An empty hash matches no text, so a removal searches for the additions and never cuts by position.
  return {
    agent,
    existed: !additions.some(({ type }) => type === "file"),
    before_sha256: "",
    after_sha256: "",
    edits: [],
    additions: recorded,
  }
}

function withoutMade({ made: _, ...addition }: Addition & { made: number }): Addition {
  return addition as Addition
}

/** True if the text contains the addition, even if somebody extended it. Throws an EditProblem for invalid JSON or TOML. */
export function hasAddition(text: string, addition: Addition): boolean {
  return ["same", "more"].includes(presenceOf(text, addition))
}

function isToml(addition: Addition): addition is TomlAddition {
  return addition.type === "table" || addition.type === "list_table"
}

function presenceOf(text: string, addition: Addition): Presence {
  if (addition.type === "file") return text === addition.content ? "same" : "other"
  return isToml(addition) ? findInToml(text, addition) : findInJson(text, addition)
}

/** The name by which people find the addition in the file. */
export function additionName(addition: Addition): string {
  if (addition.type === "file") return "It"
  if (addition.type === "item" || addition.type === "list_table") return `dex's entry in ${addition.path.join(".")}`
  return addition.type === "table" ? `[${addition.path.join(".")}]` : addition.path.join(".")
}

function withAdditions(
  base: string | undefined,
  additions: Addition[],
): { after: string; edits: TextEdit[]; recorded: FileAdditions["additions"] } {
  let text = base ?? ""
  const allEdits: TextEdit[] = []
  const recorded: FileAdditions["additions"] = []
  for (const addition of additions) {
    const { edits, made } = editsFor(base, text, addition)
    allEdits.push(...edits)
    recorded.push({ ...addition, made })
    text = applyEdits(text, edits)
  }
  return { after: text, edits: allEdits, recorded }
}

function editsFor(base: string | undefined, text: string, addition: Addition): { edits: TextEdit[]; made: number } {
  if (addition.type === "file") {
    if (base !== undefined)
      throw new EditProblem("already exists and was not written by dex, or was changed since. Move it elsewhere first")
    return { edits: [{ at: 0, removed: "", inserted: addition.content }], made: 0 }
  }
  const presence = presenceOf(text, addition)
  if (presence === "other")
    throw new EditProblem(
      `has another ${addition.path.join(".")}, which dex did not write or which was changed since. Rename or remove it first`,
    )
  if (presence !== "absent") return { edits: [], made: addition.path.length }
  return isToml(addition) ? { edits: addToToml(text, addition), made: 0 } : addToJson(text, addition)
}

/** Restores the file byte for byte if nobody changed it since. Otherwise removes only the additions that nobody changed. */
function withoutAdditions(
  text: string | undefined,
  added: FileAdditions,
): { text: string | undefined; remaining: string[] } {
  if (text === undefined) return { text, remaining: [] }
  if (sha256(text) === added.after_sha256) {
    const before = undoEdits(text, added.edits)
    if (sha256(before) === added.before_sha256) return { text: added.existed ? before : undefined, remaining: [] }
  }
  const changed = added.additions.filter((addition) => ["more", "other"].includes(presenceOf(text, addition)))
  const rest = added.additions.filter((addition) => !changed.includes(addition)).reduceRight(removeAddition, text)
  return { text: added.existed || !isEmptyFile(rest, added) ? rest : undefined, remaining: changed.map(additionName) }
}

/** True if the text contains the path of a launcher, escaped as in JSON and TOML. */
function namesLauncher(text: string, bin: Bin): boolean {
  const { windows: _, ...programs } = bin
  return Object.values(programs).some((path) => text.includes(JSON.stringify(path).slice(1, -1)))
}

function removeAddition(text: string, addition: FileAdditions["additions"][number]): string {
  if (addition.type === "file") return text === addition.content ? "" : text
  return isToml(addition) ? removeFromToml(text, addition) : removeFromJson(text, addition, addition.made)
}

function isEmptyFile(text: string, { additions }: FileAdditions): boolean {
  const isJson = additions.some(({ type }) => type === "property" || type === "item")
  return isJson ? isEmptyJson(text) : text.trim() === ""
}

/** The name of the subtable in which Codex stores its own notes about a server. The notes are removed with the server's table. */
const CODEX_NOTES = "tools"

export function findInToml(text: string, addition: TomlAddition): Presence {
  const statements = tomlStatements(text)
  const { path, values } = addition
  const tableStatements = statements.filter((statement) => startsWith(statement.path, path))
  const inline = statements.find((statement) => statement.type === "key" && startsWith(path, statement.path))
  if (inline && (inline.path.length < path.length || addition.type === "list_table"))
    throw new EditProblem(`has ${inline.path.join(".")} on one line, where dex cannot add a table`)
  if (addition.type === "list_table") return listPresence(tableStatements, addition)
  if (tableStatements.length === 0) return "absent"
  const first = tableStatements.findIndex(({ type, path: own }) => type === "header" && own.length === path.length)
  if (first < 0) return "other"
  const presentValues = new Map(tableStatements.map((key) => [key.path.slice(path.length).join("."), key.value]))
  if (!Object.entries(values).every(([name, value]) => presentValues.get(name) === tomlOf(value))) return "other"
  const isExtended = tableStatements.some((statement) => {
    const [name] = statement.path.slice(path.length)
    return name !== undefined && name !== CODEX_NOTES && byName(values, name) === undefined
  })
  return isExtended ? "more" : "same"
}

/** Finds the table in the list by its texts, so that it is found even if somebody changed a number in it. */
function listPresence(statements: TomlStatement[], addition: TomlAddition): Presence {
  if (statements.some(({ type, path }) => type === "header" && path.length === addition.path.length)) return "other"
  const texts = Object.fromEntries(Object.entries(addition.values).filter(([, value]) => typeof value === "string"))
  const ours = tablesIn(statements, addition.path).filter((one) => hasValues(one, { ...addition, values: texts }))
  if (ours.length === 0) return "absent"
  const isSame = (table: TomlStatement[]) =>
    hasValues(table, addition) && table.length - 1 === Object.keys(addition.values).length
  return ours.some(isSame) ? "same" : "more"
}

/** The tables of a list: each is its header, followed by its keys. */
function tablesIn(statements: TomlStatement[], path: string[]): TomlStatement[][] {
  const tables: TomlStatement[][] = []
  let isInside = false
  for (const statement of statements) {
    if (statement.type === "key") {
      if (isInside) tables.at(-1)!.push(statement)
      continue
    }
    const isHere = startsWith(statement.path, path)
    if (isHere && statement.type === "list_header" && statement.path.length === path.length) tables.push([statement])
    else if (isHere && isInside) tables.at(-1)!.push(statement)
    isInside = isHere && tables.length > 0
  }
  return tables
}

function hasValues(table: TomlStatement[], { path, values }: TomlAddition): boolean {
  const present = new Map(table.slice(1).map((key) => [key.path.slice(path.length).join("."), key.value]))
  return Object.entries(values).every(([name, value]) => present.get(name) === tomlOf(value))
}

/** Adds the table at the end, where it cannot change the meaning of any other line. */
export function addToToml(text: string, { type, path, values }: TomlAddition): TextEdit[] {
  const nl = newlineOf(text)
  const name = path.join(".")
  const lines = [
    type === "table" ? `[${name}]` : `[[${name}]]`,
    ...Object.entries(values).map(([name, value]) => `${name} = ${tomlOf(value)}`),
  ]
  const isEmpty = text === "" || text === "\ufeff"
  const before = isEmpty ? "" : text.endsWith("\n") ? nl : nl + nl
  return [{ at: text.length, removed: "", inserted: `${before}${lines.join(nl)}${nl}` }]
}

/** Removes the table, its subtables and the empty line before each. Comments after them stay. */
export function removeFromToml(text: string, addition: TomlAddition): string {
  const { type, path } = addition
  const statements = tomlStatements(text)
  if (type === "list_table") {
    const table = tablesIn(statements, path).findLast((one) => hasValues(one, addition))
    return table === undefined ? text : withoutRange(text, table[0]!.start, table.at(-1)!.end)
  }
  const first = statements.findIndex(({ type, path: own }) => type !== "key" && startsWith(own, path))
  if (first < 0) return text
  let last = first
  while (statements[last + 1]?.type === "key") last++
  return removeFromToml(withoutRange(text, statements[first]!.start, statements[last]!.end), addition)
}

/** Cuts a range of lines and the empty line before it. */
function withoutRange(text: string, start: number, end: number): string {
  return text.slice(0, start).replace(/(^|\n)\r?\n$/, "$1") + text.slice(end)
}

function startsWith(path: string[], beginning: string[]): boolean {
  return beginning.every((name, i) => path[i] === name)
}

/** JSON strings, lists and booleans are also valid TOML. */
function tomlOf(value: TomlValue): string {
  return Array.isArray(value) ? `[${value.map((item) => JSON.stringify(item)).join(", ")}]` : JSON.stringify(value)
}
