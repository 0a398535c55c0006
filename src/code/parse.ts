import { createRequire } from "node:module"
import { Language, type Node, Parser, Query, type QueryMatch } from "web-tree-sitter"
import type { Definition, DefinitionKind, FileFacts, Import, Use } from "../core/code.ts"
import { deprecationInComment, deprecationInMark, firstSentence } from "./doc.ts"
import type { Container, Grammar } from "./grammars/grammar.ts"
import { GRAMMARS } from "./grammars/index.ts"
import { LANGUAGES, type LanguageId } from "./languages.ts"

/**
 * The maximum number of parser steps for a text. Steps are counted instead of time, so that a busy machine gets the same
 * result. Ordinary code takes one step per hundred characters.
 */
const maxStepsFor = (text: string) => 5_000 + text.length / 30
/** The maximum depth of nodes that are queried. Nobody nests code more deeply, and the time of a query grows with depth. */
const MAX_DEPTH = 300
/**
 * The maximum number of unparsed pieces in a text that does not parse. The time of a query grows with the square of this
 * number.
 */
const MAX_UNPARSED_PIECES = 5_000
/** The time limit of a query, in milliseconds, as a last resort: twenty times what the largest file takes. */
const MAX_QUERY_MS = 10_000
const MAX_NAME_CHARS = 200
const MAX_HEAD_CHARS = 2_000
const MAX_RECEIVER_CHARS = 80

/**
 * A parser for code. It loads a grammar when it parses the first text in that language. The caller must close it, because the
 * garbage collector does not free the memory of the grammars.
 */
export type CodeParser = {
  /** Returns undefined if the text takes more work than allowed. Never throws because of a text's content. */
  parse(language: LanguageId, text: string): Promise<FileFacts | undefined>
  close(): void
}

export async function openParser(options: { maxSteps?: number } = {}): Promise<CodeParser> {
  await Parser.init()
  const parser = new Parser()
  const grammars = new Map<LanguageId, { language: Language; query: Query }>()
  return {
    parse: async (id, text) => {
      const grammar = grammars.get(id) ?? (await loadGrammar(id))
      grammars.set(id, grammar)
      return readFacts(parser, grammar, GRAMMARS[id], text, options.maxSteps ?? maxStepsFor(text))
    },
    close: () => {
      for (const { query } of grammars.values()) query.delete()
      parser.delete()
    },
  }
}

/** Returns the path of a language's grammar in the installed package. */
export function grammarFile(id: LanguageId): string {
  const name = `tree-sitter-${LANGUAGES[id].grammar}.wasm`
  return createRequire(import.meta.url).resolve(`@vscode/tree-sitter-wasm/wasm/${name}`)
}

async function loadGrammar(id: LanguageId): Promise<{ language: Language; query: Query }> {
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
  // The declared type returns nothing, but returning `true` stops the parser.
  const progressCallback = () => ++steps > maxSteps
  parser.setLanguage(language)
  const tree = parser.parse(text, null, { progressCallback })
  if (!tree) {
    parser.reset()
    return undefined
  }
  try {
    if (tree.rootNode.type === "ERROR" && tree.rootNode.childCount > MAX_UNPARSED_PIECES) return undefined
    const deadline = performance.now() + MAX_QUERY_MS
    let isTimedOut = false
    const shouldStop = () => {
      isTimedOut ||= performance.now() > deadline
      return progressCallback() || isTimedOut
    }
    const matches = query.matches(tree.rootNode, { progressCallback: shouldStop, maxStartDepth: MAX_DEPTH })
    if (steps > maxSteps || isTimedOut) return undefined
    return { ...factsOf(matches, grammar, text), has_errors: tree.rootNode.hasError }
  } finally {
    tree.delete()
  }
}

type Span = { start: number; end: number }
type Scope = Span & Container & { definition?: Definition }
type MatchedNodes = {
  definitions: { node: Node; name: Node; kind: DefinitionKind | "scope"; container?: Node }[]
  imports: Node[]
  wraps: Wrap[]
  comments: Map<number, NodeAbove>
  docstrings: Node[]
  deprecationWarnings: Node[]
  uses: UseNode[]
}
/**
 * A node that encloses a definition. It is found by its span, because looking up a node's parent means walking down from the
 * root.
 */
type Wrap = Span & { row: number }
type UseNode = { start: number; node: Node; receiver: Node | undefined; isCall: boolean }
/** A comment or attribute. It is stored under the row on which it ends. */
type NodeAbove = Span & { firstRow: number; isMark: boolean }

function factsOf(matches: QueryMatch[], grammar: Grammar, text: string): Omit<FileFacts, "has_errors"> {
  const matched = groupMatches(matches)
  const statements = importsOf(matched.imports, grammar)
  const scopes = scopesOf(matched, statements, grammar, text)
  const definitions = scopes.flatMap(({ definition }) => definition ?? [])
  const docstringScope = scopeFinder(scopes)
  for (const node of matched.docstrings) addDocstring(docstringScope(node.startIndex)?.definition, node.text)
  const warningScope = scopeFinder(scopes)
  for (const node of matched.deprecationWarnings) {
    const definition = warningScope(node.startIndex)?.definition
    if (definition) definition.deprecated ??= ""
  }
  const imports = statements.flatMap((statement) => statement.imports)
  return { definitions, imports, uses: usesOf(matched, scopes, statements, text) }
}

type ImportStatement = Span & { imports: Import[] }

function importsOf(nodes: Node[], grammar: Grammar): ImportStatement[] {
  return nodes
    .map((node) => ({
      start: node.startIndex,
      end: node.endIndex,
      imports: grammar.imports(node).filter(hasShortNames),
    }))
    .filter(({ imports }) => imports.length > 0)
    .sort((a, b) => a.start - b.start)
}

function groupMatches(matches: QueryMatch[]): MatchedNodes {
  const matched: MatchedNodes = {
    ...{ definitions: [], imports: [], wraps: [], docstrings: [], deprecationWarnings: [], uses: [] },
    comments: new Map(),
  }
  for (const { captures } of matches) {
    const firstCapture = captures[0]
    if (!firstCapture) continue
    // Nine out of ten matches are uses of a name, so they are handled first.
    if (captures.length === 1 && (firstCapture.name === "ref" || firstCapture.name === "call")) {
      const { node } = firstCapture
      matched.uses.push({ start: node.startIndex, node, receiver: undefined, isCall: firstCapture.name === "call" })
      continue
    }
    const captured = (captureName: string) => captures.find(({ name }) => name === captureName)?.node
    const definition = captures.find(({ name }) => name.startsWith("def.") || name === "scope")
    const name = captured("name")
    const use = captured("call") ?? captured("ref")
    const importNode = captured("import")
    if (definition && name) {
      const kind = definition.name === "scope" ? "scope" : (definition.name.slice(4) as DefinitionKind)
      const container = captured("container")
      matched.definitions.push({ node: definition.node, name, kind, container })
    } else if (use) {
      const isCall = captured("call") !== undefined
      matched.uses.push({ start: use.startIndex, node: use, receiver: captured("receiver"), isCall })
    } else if (importNode) {
      matched.imports.push(importNode)
    } else if (firstCapture.name === "wrap") {
      const { startIndex: start, endIndex: end, startPosition } = firstCapture.node
      matched.wraps.push({ start, end, row: startPosition.row })
    } else if (firstCapture.name === "comment" || firstCapture.name === "mark")
      addAbove(matched.comments, firstCapture.node, firstCapture.name)
    else if (firstCapture.name === "docstring") matched.docstrings.push(firstCapture.node)
    else if (captured("warns")) matched.deprecationWarnings.push(captured("warns")!)
  }
  matched.wraps.sort((a, b) => a.start - b.start || b.end - a.end)
  matched.docstrings.sort(byStart)
  matched.deprecationWarnings.sort(byStart)
  return matched
}

function addAbove(comments: Map<number, NodeAbove>, node: Node, name: string): void {
  const { startIndex: start, endIndex: end, startPosition } = node
  comments.set(lastRow(node), { start, end, firstRow: startPosition.row, isMark: name === "mark" })
}

/** Returns the last row of a node. Some grammars include the final line break in a comment or directive. */
function lastRow({ startPosition: start, endPosition: end }: Node): number {
  return end.column === 0 && end.row > start.row ? end.row - 1 : end.row
}

/** Returns definitions and scopes in the order of the text, each with its innermost container. */
function scopesOf(matched: MatchedNodes, imports: ImportStatement[], grammar: Grammar, text: string): Scope[] {
  const candidates = matched.definitions
    .map((definition) => ({
      ...definition,
      start: definition.node.startIndex,
      end: definition.node.endIndex,
      nameStart: definition.name.startIndex,
    }))
    .sort((a, b) => a.start - b.start || b.end - a.end || a.nameStart - b.nameStart)
  const scopes: Scope[] = []
  const openScopes: Scope[] = []
  const wraps: Wrap[] = []
  let nextWrap = 0
  const importStarts = new Set(imports.map((statement) => statement.start))
  const namePositions = new Set<number>()
  const variables = new Set<string>()
  for (const {
    node,
    name: nameNode,
    kind: matchedKind,
    container: containerNode,
    start,
    end,
    nameStart,
  } of candidates) {
    while (openScopes.length > 0 && openScopes.at(-1)!.end <= start) openScopes.pop()
    for (; nextWrap < matched.wraps.length && matched.wraps[nextWrap]!.start <= start; nextWrap++) {
      const wrap = matched.wraps[nextWrap]!
      while (wraps.length > 0 && wraps.at(-1)!.end <= wrap.start) wraps.pop()
      wraps.push(wrap)
    }
    while (wraps.length > 0 && wraps.at(-1)!.end <= start) wraps.pop()
    if (namePositions.has(nameStart)) continue
    // `a, b = 1, 2` creates two definitions with the same span, neither of which contains the other.
    const enclosingScope = openScopes.findLast(
      (scope) => scope.end >= end && !(scope.start === start && scope.end === end),
    )
    const { name, qualifier } = splitName(text.slice(nameStart, nameNode.endIndex))
    if (name === "" || name === "_" || name.length > MAX_NAME_CHARS) continue
    if (importStarts.has(start)) continue
    const outermost = wraps.find((wrap) => !enclosingScope || wrap.start > enclosingScope.start) ?? {
      start,
      row: node.startPosition.row,
    }
    const head = text.slice(Math.max(outermost.start, nameStart - MAX_HEAD_CHARS), nameStart)
    const context = { node, head, name, container: enclosingScope }
    const kind = matchedKind === "scope" || !grammar.kindOf ? matchedKind : grammar.kindOf(matchedKind, context)
    if (kind === undefined) continue
    namePositions.add(nameStart)
    const scope: Scope = { start, end, kind, name }
    if (kind !== "scope") {
      // If a variable is assigned again, the first assignment is its definition.
      if (kind === "variable" || kind === "constant") {
        const key = `${enclosingScope?.name ?? ""}\n${name}`
        if (variables.has(key)) continue
        variables.add(key)
      }
      const nameRow = nameNode.startPosition.row
      const container =
        qualifier ?? (containerNode ? containerName(containerNode.text) : undefined) ?? enclosingScope?.name
      scope.definition = definitionOf(
        { node, head, outer: outermost, nameRow, name, kind, container },
        grammar,
        matched.comments,
        text,
      )
    }
    scopes.push(scope)
    openScopes.push(scope)
  }
  return scopes
}

type Candidate = {
  node: Node
  /** The text from the beginning of the definition (including `export` and decorators) to its name. */
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
  comments: Map<number, NodeAbove>,
  text: string,
): Definition {
  const nodeRow = node.startPosition.row
  // In a declaration of several names, a name on its own line has its own comment.
  const start = nodeRow === outer.row ? outer.start : node.startIndex
  const above = isFirstOnLine(text, start) ? commentsAbove(comments, nodeRow, text) : NOTHING_ABOVE
  const { comment, marks } = above.comment || nodeRow === outer.row ? above : commentsAbove(comments, outer.row, text)
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

/** Splits `Foo::bar` into the name `bar` and the qualifier `Foo`. Removes the quotes of a quoted property name. */
function splitName(text: string): { name: string; qualifier?: string } {
  const separatorStart = text.lastIndexOf("::")
  if (separatorStart > 0) return { name: text.slice(separatorStart + 2), qualifier: text.slice(0, separatorStart) }
  return { name: text.replace(/^["']|["']$/g, "") }
}

/** Returns the name of a container. `(s *Server[T])` and `Foo.prototype` name one; `exports` and `this` do not. */
function containerName(text: string): string | undefined {
  if (/^(?:this|exports|module\.exports)$/.test(text)) return undefined
  const receiver = /^\(\s*(?:\w+\s+)?\*?\s*(\w+)/.exec(text)?.[1]
  return receiver ?? (text.replace(/\.prototype$/, "").slice(0, MAX_NAME_CHARS) || undefined)
}

const MAX_NODES_ABOVE = 20
const NOTHING_ABOVE = { comment: "", marks: "" }

/**
 * Returns the comments and attributes directly above a row: one block comment or consecutive line comments, and the attributes.
 */
function commentsAbove(
  comments: Map<number, NodeAbove>,
  row: number,
  text: string,
): { comment: string; marks: string } {
  const lines: string[] = []
  let marks = ""
  let currentRow = row - 1
  for (let i = 0; i < MAX_NODES_ABOVE; i++) {
    const above = comments.get(currentRow)
    if (!above || !isFirstOnLine(text, above.start) || !isLastOnLine(text, above.end)) break
    const content = text.slice(above.start, Math.min(above.end, above.start + 4_000))
    const isBlock = content.startsWith("/*") || content.startsWith("<#")
    if (above.isMark) marks = `${content}\n${marks}`
    else if (isBlock && lines.length > 0) break
    else lines.unshift(content)
    currentRow = above.firstRow - 1
    if (isBlock && !above.isMark && !comments.get(currentRow)?.isMark) break
  }
  return { comment: lines.join("\n"), marks }
}

/** Matches the text that may precede a definition on its line: attributes and decorators. */
const LEADING_ATTRIBUTES = /^\s*(?:(?:@[\w.]+(?:\([^()]*\))?|#\[[^\]]*\])\s*)*$/

function isFirstOnLine(text: string, start: number): boolean {
  return LEADING_ATTRIBUTES.test(text.slice(text.lastIndexOf("\n", start - 1) + 1, start))
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

/** Creates a function that returns the innermost scope at a position. It must be called with ascending positions. */
function scopeFinder(scopes: Scope[]): (at: number) => Scope | undefined {
  const openScopes: Scope[] = []
  let next = 0
  return (at) => {
    while (next < scopes.length && scopes[next]!.start <= at) {
      const scope = scopes[next++]!
      while (openScopes.length > 0 && openScopes.at(-1)!.end <= scope.start) openScopes.pop()
      openScopes.push(scope)
    }
    while (openScopes.length > 0 && openScopes.at(-1)!.end <= at) openScopes.pop()
    return openScopes.at(-1)
  }
}

function usesOf(matched: MatchedNodes, scopes: Scope[], statements: ImportStatement[], text: string): Use[] {
  const imports = statements.flatMap((statement) => statement.imports)
  const importedNames = new Set(imports.map(({ as }) => as))
  const namespaces = new Set(imports.filter(({ name }) => name === "*").map(({ as }) => as))
  const knownNames = new Set([
    ...importedNames,
    ...scopes.flatMap(({ definition }) => (definition ? definition.name : [])),
  ])
  // Positions at which a name is already recorded as a definition or a call.
  const recordedPositions = new Set(matched.definitions.map(({ name }) => name.startIndex))
  for (const { start, isCall } of matched.uses) if (isCall) recordedPositions.add(start)
  /**
   * Returns true if the name, or its receiver, is imported or defined in this file. References to other names are mostly local
   * variables.
   */
  const isKnown = (name: string, receiver: string | undefined) =>
    receiver === undefined ? knownNames.has(name) && !namespaces.has(name) : importedNames.has(receiver)
  const scopeAt = scopeFinder(scopes)
  const usesByKey = new Map<string, Use>()
  let nextImport = 0
  for (const { start, node, receiver: receiverNode, isCall } of matched.uses.sort((a, b) => a.start - b.start)) {
    while (nextImport < statements.length && statements[nextImport]!.end <= start) nextImport++
    const isInImport = nextImport < statements.length && statements[nextImport]!.start <= start
    if (isInImport || (!isCall && recordedPositions.has(start))) continue
    const name = text.slice(start, node.endIndex)
    const receiver = receiverNode && receiverName(text, receiverNode)
    if ((!isCall && !isKnown(name, receiver)) || name.length > MAX_NAME_CHARS) continue
    const scope = scopeAt(start)
    const key = `${name}\n${receiver ?? ""}\n${scope?.start ?? ""}`
    const earlierUse = usesByKey.get(key)
    const line = node.startPosition.row + 1
    if (!earlierUse) usesByKey.set(key, useOf(name, receiver, scope?.name, line, isCall))
    // A call is more informative than a reference.
    else if (isCall && earlierUse.kind === "reference")
      usesByKey.set(key, useOf(name, receiver, scope?.name, line, isCall))
  }
  return [...usesByKey.values()]
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

const hasShortNames = ({ module, name, as }: Import) =>
  module.length <= 500 && name.length + as.length <= 2 * MAX_NAME_CHARS
const byStart = (a: Node, b: Node) => a.startIndex - b.startIndex
