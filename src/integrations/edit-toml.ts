import type { TomlAddition, TomlValue } from "../agents/kit/wiring.ts"
import { byName } from "../core/by-name.ts"
import { EditProblem, newlineOf, type TextEdit } from "./edit.ts"
import type { Presence } from "./edit-json.ts"
import { tomlStatements } from "./toml-lines.ts"

/** What Codex itself notes about a server, and what goes with it. */
const NOTED = "tools"

export function findInToml(text: string, addition: TomlAddition): Presence {
  const statements = tomlStatements(text)
  const { path, values } = addition
  const about = statements.filter((statement) => startsWith(statement.path, path))
  const inline = statements.find((statement) => statement.type === "key" && startsWith(path, statement.path))
  if (inline && inline.path.length < path.length)
    throw new EditProblem(`has ${inline.path.join(".")} on one line, where dex cannot add a table`)
  if (about.length === 0) return "absent"
  const first = about.findIndex(({ type, path: own }) => type === "header" && own.length === path.length)
  if (first < 0) return "other"
  const said = new Map(about.map((key) => [key.path.slice(path.length).join("."), key.value]))
  if (!Object.entries(values).every(([name, value]) => said.get(name) === tomlOf(value))) return "other"
  const isMore = about.some((statement) => {
    const [name] = statement.path.slice(path.length)
    return name !== undefined && name !== NOTED && byName(values, name) === undefined
  })
  return isMore ? "more" : "same"
}

/** Puts the table at the end, where it cannot change what any other line means. */
export function addToToml(text: string, { path, values }: TomlAddition): TextEdit[] {
  const nl = newlineOf(text)
  const lines = [`[${path.join(".")}]`, ...Object.entries(values).map(([name, value]) => `${name} = ${tomlOf(value)}`)]
  const bare = text === "" || text === "\ufeff"
  const before = bare ? "" : text.endsWith("\n") ? nl : nl + nl
  return [{ at: text.length, removed: "", inserted: `${before}${lines.join(nl)}${nl}` }]
}

/** Without the table and the tables in it, and without the empty line before each. Comments behind them stay. */
export function removeFromToml(text: string, { path }: TomlAddition): string {
  const statements = tomlStatements(text)
  const first = statements.findIndex(({ type, path: own }) => type !== "key" && startsWith(own, path))
  if (first < 0) return text
  let last = first
  while (statements[last + 1]?.type === "key") last++
  const before = text.slice(0, statements[first]!.start)
  const kept = before.replace(/(^|\n)\r?\n$/, "$1")
  return removeFromToml(kept + text.slice(statements[last]!.end), { type: "table", path, values: {} })
}

function startsWith(path: string[], beginning: string[]): boolean {
  return beginning.every((name, i) => path[i] === name)
}

/** JSON's strings, lists and booleans are TOML's too. */
function tomlOf(value: TomlValue): string {
  return Array.isArray(value) ? `[${value.map((item) => JSON.stringify(item)).join(", ")}]` : JSON.stringify(value)
}
