import { createRequire } from "node:module"
import { Language, type Node, Parser, Query, type QueryMatch } from "web-tree-sitter"
import type { Definition, DefinitionKind, FileFacts, Import, Use } from "../core/code.ts"
import { deprecationInComment, deprecationInMark, firstSentence } from "./doc.ts"
import type { Container, Grammar } from "./grammars/grammar.ts"
import { GRAMMARS } from "./grammars/index.ts"
import { LANGUAGES, type LanguageId } from "./languages.ts"

/**
 * The most steps for a text. Steps of the parser are counted instead of time, because a busy machine must get the same result.
 * Ordinary code takes one step per hundred characters. The time of a query grows with depth, so nodes that are nested deeper than
 * anybody writes are not queried.
 */
const stepsFor = (text: string) => 5_000 + text.length / 30
const MAX_DEPTH = 300
/** The most unparsed pieces of a text that does not parse. The time of a query grows with the square of their number. */
const MAX_LOOSE_PIECES = 5_000
/** The time limit of a query, in milliseconds, as a last resort: twenty times what the largest file takes. */
const MAX_QUERY_MS = 10_000
const MAX_NAME_CHARS = 200
const MAX_HEAD_CHARS = 2_000
const MAX_RECEIVER_CHARS = 80

/** A parser for code. It loads a grammar with the first text in its language. Close it, because trees live outside the heap. */
export type CodeParser = {
  /** Returns undefined if the text takes more work than allowed. Never throws because of a text's content. */
  parse(language: LanguageId, text: string): Promise<FileFacts | undefined>
  close(): void
}

export async function openParser(options: { maxSteps?: number } = {}): Promise<CodeParser> {
  await Parser.init()
  const parser = new Parser()
  const loaded = new Map<LanguageId, { language: Language; query: Query }>()
  return {
    parse: async (id, text) => {
      const grammar = loaded.get(id) ?? (await load(id))
      loaded.set(id, grammar)
      return readFacts(parser, grammar, GRAMMARS[id], text, options.maxSteps ?? stepsFor(text))
    },
    close: () => {
      for (const { query } of loaded.values()) query.delete()
      parser.delete()
    },
  }
}

/** The file of a language's grammar in the installed package. */
export function grammarFile(id: LanguageId): string {
  const name = `tree-sitter-${LANGUAGES[id].grammar}.wasm`
  return createRequire(import.meta.url).resolve(`@vscode/tree-sitter-wasm/wasm/${name}`)
}

async function load(id: LanguageId): Promise<{ language: Language; query: Query }> {
  const language = await Language.load(grammarFile(id))
  return { language, query: new Query(language, GRAMMARS[id].query) }
}

function readFacts(
  parser: Parser,
  { language, query }: { language: Language; query: Query },
  grammar: Grammar,
  text: string,
  maxSteps: number,
): FileFacts | undefined {
  let steps = 0
  // Its type returns nothing, but returning `true` stops the parser.
  const progressCallback = () => ++steps > maxSteps
  parser.setLanguage(language)
  const tree = parser.parse(text, null, { progressCallback })
  if (!tree) {
    parser.reset()
    return undefined
  }
  try {
    if (tree.rootNode.type === "ERROR" && tree.rootNode.childCount > MAX_LOOSE_PIECES) return undefined
    const deadline = performance.now() + MAX_QUERY_MS
    let late = false
    const stop = () => {
      late ||= performance.now() > deadline
      return progressCallback() || late
    }
    const matches = query.matches(tree.rootNode, { progressCallback: stop, maxStartDepth: MAX_DEPTH })
    if (steps > maxSteps || late) return undefined
    return { ...factsOf(matches, grammar, text), has_errors: tree.rootNode.hasError }
  } finally {
    tree.delete()
  }
}

type Span = { start: number; end: number }
type Scope = Span & Container & { definition?: Definition }
type Found = {
  definitions: { node: Node; name: Node; kind: DefinitionKind | "scope"; container?: Node }[]
  imports: Node[]
  wraps: Wrap[]
  comments: Map<number, Above>
  docstrings: Node[]
  warns: Node[]
  uses: FoundUse[]
}
/** An enclosing node. Looking up a node's parent walks down from the root, so enclosing nodes are found by their span instead. */
type Wrap = Span & { row: number }
type FoundUse = { start: number; node: Node; receiver: Node | undefined; isCall: boolean }
/** A comment or an attribute, stored under the row on which it ends. */
type Above = Span & { firstRow: number; isMark: boolean }

function factsOf(matches: QueryMatch[], grammar: Grammar, text: string): Omit<FileFacts, "has_errors"> {
  const found = sortOut(matches)
  const statements = importsOf(found.imports, grammar)
  const scopes = scopesOf(found, statements, grammar, text)
  const definitions = scopes.flatMap(({ definition }) => definition ?? [])
  const inside = scopeFinder(scopes)
  for (const node of found.docstrings) addDocstring(inside(node.startIndex)?.definition, node.text)
  const outer = scopeFinder(scopes)
  for (const node of found.warns) {
    const warned = outer(node.startIndex)?.definition
    if (warned) warned.deprecated ??= ""
  }
  const imports = statements.flatMap((statement) => statement.imports)
  return { definitions, imports, uses: usesOf(found, scopes, statements, text) }
}

type ImportStatement = Span & { imports: Import[] }

function importsOf(nodes: Node[], grammar: Grammar): ImportStatement[] {
  return nodes
    .map((node) => ({ start: node.startIndex, end: node.endIndex, imports: grammar.imports(node).filter(isShort) }))
    .filter(({ imports }) => imports.length > 0)
    .sort((a, b) => a.start - b.start)
}

function sortOut(matches: QueryMatch[]): Found {
  const found: Found = {
    ...{ definitions: [], imports: [], wraps: [], docstrings: [], warns: [], uses: [] },
    comments: new Map(),
  }
  for (const { captures } of matches) {
    const first = captures[0]
    if (!first) continue
    // Nine of ten matches are uses of a name, so handle them first.
    if (captures.length === 1 && (first.name === "ref" || first.name === "call")) {
      const { node } = first
      found.uses.push({ start: node.startIndex, node, receiver: undefined, isCall: first.name === "call" })
      continue
    }
    const by = (wanted: string) => captures.find(({ name }) => name === wanted)?.node
    const main = captures.find(({ name }) => name.startsWith("def.") || name === "scope")
    const name = by("name")
    const used = by("call") ?? by("ref")
    const imported = by("import")
    if (main && name) {
      const kind = main.name === "scope" ? "scope" : (main.name.slice(4) as DefinitionKind)
      const container = by("container")
      found.definitions.push({ node: main.node, name, kind, container })
    } else if (used) {
      const isCall = by("call") !== undefined
      found.uses.push({ start: used.startIndex, node: used, receiver: by("receiver"), isCall })
    } else if (imported) {
      found.imports.push(imported)
    } else if (first.name === "wrap") {
      const { startIndex: start, endIndex: end, startPosition } = first.node
      found.wraps.push({ start, end, row: startPosition.row })
    } else if (first.name === "comment" || first.name === "mark") addAbove(found.comments, first.node, first.name)
    else if (first.name === "docstring") found.docstrings.push(first.node)
    else if (by("warns")) found.warns.push(by("warns")!)
  }
  found.wraps.sort((a, b) => a.start - b.start || b.end - a.end)
  found.docstrings.sort(byStart)
  found.warns.sort(byStart)
  return found
}

function addAbove(comments: Map<number, Above>, node: Node, name: string): void {
  const { startIndex: start, endIndex: end, startPosition } = node
  comments.set(lastRow(node), { start, end, firstRow: startPosition.row, isMark: name === "mark" })
}

/** Some grammars include the line break in a comment or a directive. */
function lastRow({ startPosition: start, endPosition: end }: Node): number {
  return end.column === 0 && end.row > start.row ? end.row - 1 : end.row
}

/** Returns definitions and scopes in the order of the text, each with its innermost container. */
function scopesOf(found: Found, imports: ImportStatement[], grammar: Grammar, text: string): Scope[] {
  const candidates = found.definitions
    .map((one) => ({ ...one, start: one.node.startIndex, end: one.node.endIndex, at: one.name.startIndex }))
    .sort((a, b) => a.start - b.start || b.end - a.end || a.at - b.at)
  const scopes: Scope[] = []
  const open: Scope[] = []
  const wraps: Wrap[] = []
  let nextWrap = 0
  const importedAt = new Set(imports.map((statement) => statement.start))
  const seen = new Set<number>()
  const variables = new Set<string>()
  for (const { node, name: nameNode, kind: matchedKind, container: containerNode, start, end, at } of candidates) {
    while (open.length > 0 && open.at(-1)!.end <= start) open.pop()
    for (; nextWrap < found.wraps.length && found.wraps[nextWrap]!.start <= start; nextWrap++) {
      const wrap = found.wraps[nextWrap]!
      while (wraps.length > 0 && wraps.at(-1)!.end <= wrap.start) wraps.pop()
      wraps.push(wrap)
    }
    while (wraps.length > 0 && wraps.at(-1)!.end <= start) wraps.pop()
    if (seen.has(at)) continue
    // `a, b = 1, 2` creates two definitions with the same span: neither contains the other.
    const around = open.findLast((scope) => scope.end >= end && !(scope.start === start && scope.end === end))
    const { name, qualifier } = splitName(text.slice(at, nameNode.endIndex))
    if (name === "" || name === "_" || name.length > MAX_NAME_CHARS) continue
    if (importedAt.has(start)) continue
    const outer = wraps.find((wrap) => !around || wrap.start > around.start) ?? { start, row: node.startPosition.row }
    const head = text.slice(Math.max(outer.start, at - MAX_HEAD_CHARS), at)
    const context = { node, head, name, container: around }
    const kind = matchedKind === "scope" || !grammar.kindOf ? matchedKind : grammar.kindOf(matchedKind, context)
    if (kind === undefined) continue
    seen.add(at)
    const scope: Scope = { start, end, kind, name }
    if (kind !== "scope") {
      // If a variable is assigned again, the first assignment is its definition.
      if (kind === "variable" || kind === "constant") {
        const key = `${around?.name ?? ""}\n${name}`
        if (variables.has(key)) continue
        variables.add(key)
      }
      const nameRow = nameNode.startPosition.row
      const container = qualifier ?? (containerNode ? containerName(containerNode.text) : undefined) ?? around?.name
      scope.definition = definitionOf(
        { node, head, outer, nameRow, name, kind, container },
        grammar,
        found.comments,
        text,
      )
    }
    scopes.push(scope)
    open.push(scope)
  }
  return scopes
}

type Candidate = {
  node: Node
  /** The text from the beginning of the definition, including `export` and decorators, to its name. */
  head: string
  outer: { start: number; row: number }
  nameRow: number
  name: string
  kind: DefinitionKind
  container: string | undefined
}

function definitionOf(
  { node, head, outer, nameRow, name, kind, container }: Candidate,
  grammar: Grammar,
  comments: Map<number, Above>,
  text: string,
): Definition {
  const own = node.startPosition.row
  // In a group, a member that starts on its own line has its own comment.
  const start = own === outer.row ? outer.start : node.startIndex
  const above = isFirstOnLine(text, start) ? commentsAbove(comments, own, text) : NOTHING_ABOVE
  const { comment, marks } = above.comment || own === outer.row ? above : commentsAbove(comments, outer.row, text)
  const doc = comment ? firstSentence(comment) : undefined
  const deprecated = deprecationInMark(marks + head) ?? (comment ? deprecationInComment(comment) : undefined)
  return {
    name,
    kind,
    container: container !== undefined && container.length <= MAX_NAME_CHARS ? container : undefined,
    line: nameRow + 1,
    end_line: lastRow(node) + 1,
    exported: grammar.isExported(head, name)
      ? /\bexport\s+default\b/.test(head)
        ? ("default" as const)
        : true
      : undefined,
    deprecated,
    doc,
  }
}

/** Splits `Foo::bar` into `bar` in `Foo`. Names of properties may be quoted. */
function splitName(text: string): { name: string; qualifier?: string } {
  const at = text.lastIndexOf("::")
  if (at > 0) return { name: text.slice(at + 2), qualifier: text.slice(0, at) }
  return { name: text.replace(/^["']|["']$/g, "") }
}

/** `(s *Server[T])` and `Foo.prototype` name a container; `exports` and `this` do not. */
function containerName(text: string): string | undefined {
  if (/^(?:this|exports|module\.exports)$/.test(text)) return undefined
  const receiver = /^\(\s*(?:\w+\s+)?\*?\s*(\w+)/.exec(text)?.[1]
  return receiver ?? (text.replace(/\.prototype$/, "").slice(0, MAX_NAME_CHARS) || undefined)
}

const MAX_ABOVE = 20
const NOTHING_ABOVE = { comment: "", marks: "" }

/** Returns the comments and attributes directly above a row: one block comment or a run of line comments, and attributes. */
function commentsAbove(comments: Map<number, Above>, row: number, text: string): { comment: string; marks: string } {
  const lines: string[] = []
  let marks = ""
  let at = row - 1
  for (let i = 0; i < MAX_ABOVE; i++) {
    const above = comments.get(at)
    if (!above || !isFirstOnLine(text, above.start) || !isLastOnLine(text, above.end)) break
    const content = text.slice(above.start, Math.min(above.end, above.start + 4_000))
    const isBlock = content.startsWith("/*") || content.startsWith("<#")
    if (above.isMark) marks = `${content}\n${marks}`
    else if (isBlock && lines.length > 0) break
    else lines.unshift(content)
    at = above.firstRow - 1
    if (isBlock && !above.isMark && !comments.get(at)?.isMark) break
  }
  return { comment: lines.join("\n"), marks }
}

/** Text that may precede a definition on its line: attributes and decorators. */
const BEFORE_FIRST = /^\s*(?:(?:@[\w.]+(?:\([^()]*\))?|#\[[^\]]*\])\s*)*$/

function isFirstOnLine(text: string, start: number): boolean {
  return BEFORE_FIRST.test(text.slice(text.lastIndexOf("\n", start - 1) + 1, start))
}

function isLastOnLine(text: string, end: number): boolean {
  const next = text.indexOf("\n", end)
  return text.slice(end, next < 0 ? text.length : next).trim() === "" || text[end - 1] === "\n"
}

function addDocstring(definition: Definition | undefined, text: string): void {
  if (!definition) return
  const doc = firstSentence(text)
  const deprecated = deprecationInComment(text)
  if (doc !== undefined) definition.doc = doc
  if (deprecated !== undefined) definition.deprecated ??= deprecated
}

/** Returns the scope that contains a position. Positions must be queried in order. */
function scopeFinder(scopes: Scope[]): (at: number) => Scope | undefined {
  const open: Scope[] = []
  let next = 0
  return (at) => {
    while (next < scopes.length && scopes[next]!.start <= at) {
      const scope = scopes[next++]!
      while (open.length > 0 && open.at(-1)!.end <= scope.start) open.pop()
      open.push(scope)
    }
    while (open.length > 0 && open.at(-1)!.end <= at) open.pop()
    return open.at(-1)
  }
}

function usesOf(found: Found, scopes: Scope[], statements: ImportStatement[], text: string): Use[] {
  const imports = statements.flatMap((statement) => statement.imports)
  const imported = new Set(imports.map(({ as }) => as))
  const spaces = new Set(imports.filter(({ name }) => name === "*").map(({ as }) => as))
  const known = new Set([...imported, ...scopes.flatMap(({ definition }) => (definition ? definition.name : []))])
  // Positions that are already a definition or a call.
  const taken = new Set(found.definitions.map(({ name }) => name.startIndex))
  for (const { start, isCall } of found.uses) if (isCall) taken.add(start)
  /** References to names that are neither imported nor defined here are mostly local variables. */
  const isKnown = (name: string, receiver: string | undefined) =>
    receiver === undefined ? known.has(name) && !spaces.has(name) : imported.has(receiver)
  const scopeAt = scopeFinder(scopes)
  const seen = new Map<string, Use>()
  let nextImport = 0
  for (const { start, node, receiver: receiverNode, isCall } of found.uses.sort((a, b) => a.start - b.start)) {
    while (nextImport < statements.length && statements[nextImport]!.end <= start) nextImport++
    const inImport = nextImport < statements.length && statements[nextImport]!.start <= start
    if (inImport || (!isCall && taken.has(start))) continue
    const name = text.slice(start, node.endIndex)
    const receiver = receiverNode && receiverName(text, receiverNode)
    if ((!isCall && !isKnown(name, receiver)) || name.length > MAX_NAME_CHARS) continue
    const scope = scopeAt(start)
    const key = `${name}\n${receiver ?? ""}\n${scope?.start ?? ""}`
    const earlier = seen.get(key)
    const line = node.startPosition.row + 1
    if (!earlier) seen.set(key, useOf(name, receiver, scope?.name, line, isCall))
    // A call is more informative than a reference.
    else if (isCall && earlier.kind === "reference") seen.set(key, useOf(name, receiver, scope?.name, line, isCall))
  }
  return [...seen.values()]
}

function useOf(
  name: string,
  receiver: string | undefined,
  container: string | undefined,
  line: number,
  isCall: boolean,
): Use {
  return {
    name,
    receiver,
    container,
    line,
    kind: isCall ? "call" : "reference",
  }
}

function receiverName(text: string, node: Node): string {
  const { startIndex: start, endIndex: end } = node
  if (end - start > MAX_RECEIVER_CHARS) return "?"
  const name = text.slice(start, end)
  return /^[\p{L}\p{N}_$.]+$/u.test(name) ? name : "?"
}

const isShort = ({ module, name, as }: Import) => module.length <= 500 && name.length + as.length <= 2 * MAX_NAME_CHARS
const byStart = (a: Node, b: Node) => a.startIndex - b.startIndex
