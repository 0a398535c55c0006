import type { Node } from "web-tree-sitter"
import type { DefinitionKind, Import } from "../../core/code.ts"
import { type Container, type Grammar, startLineOf, unquote } from "./grammar.ts"

const DECLARATOR = `(variable_declarator name: (identifier) @name) @def.variable`
/** Matches only variables that are declared at the top level of the file or of a namespace in it. */
const topLevelVariables = (parent: string) => `
  (${parent} [(lexical_declaration ${DECLARATOR}) (variable_declaration ${DECLARATOR})
    (export_statement [(lexical_declaration ${DECLARATOR}) (variable_declaration ${DECLARATOR})])])`

// A predicate costs more than the rest of a pattern, so importsOf checks whether a call is a `require`.
const JAVASCRIPT_QUERY = `
  (comment) @comment
  (decorator) @mark
  (export_statement declaration: (_)) @wrap
  (program [(lexical_declaration) (variable_declaration)] @wrap)
  (function_declaration name: (_) @name) @def.function
  (generator_function_declaration name: (_) @name) @def.function
  (class_declaration name: (_) @name) @def.class
  (method_definition name: (_) @name) @def.method
  ${topLevelVariables("program")}
  (assignment_expression
    left: (member_expression object: (_) @container property: (property_identifier) @name)
    right: [(function_expression) (arrow_function) (class)]) @def.function
  (import_statement) @import
  (export_statement source: (_)) @import
  (variable_declarator value: (call_expression function: (identifier) arguments: (arguments . (string) .))) @import
  (call_expression function: (identifier) @call)
  (call_expression function: (member_expression object: (_) @receiver property: (property_identifier) @call))
  (new_expression constructor: (identifier) @call)
  (new_expression constructor: (member_expression object: (_) @receiver property: (property_identifier) @call))
  (member_expression object: (identifier) @receiver property: (property_identifier) @ref)
  (identifier) @ref
  (shorthand_property_identifier) @ref
`
const JSX_QUERY = `
  (jsx_opening_element name: (identifier) @call (#match? @call "^[A-Z]"))
  (jsx_self_closing_element name: (identifier) @call (#match? @call "^[A-Z]"))
`
const TYPESCRIPT_QUERY = `
  ${JAVASCRIPT_QUERY}
  (function_signature name: (_) @name) @def.function
  (abstract_class_declaration name: (_) @name) @def.class
  (interface_declaration name: (_) @name) @def.interface
  (type_alias_declaration name: (_) @name) @def.type
  (enum_declaration name: (_) @name) @def.enum
  (internal_module name: (_) @name) @def.module
  (module name: (_) @name) @def.module
  (method_signature name: (_) @name) @def.method
  (abstract_method_signature name: (_) @name) @def.method
  (public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @def.method
  ${topLevelVariables("internal_module body: (statement_block")})
  ${topLevelVariables("module body: (statement_block")})
  (ambient_declaration) @wrap
  (internal_module body: (statement_block [(lexical_declaration) (variable_declaration)] @wrap))
  (module body: (statement_block [(lexical_declaration) (variable_declaration)] @wrap))
  (ambient_declaration [(lexical_declaration ${DECLARATOR}) (variable_declaration ${DECLARATOR})])
  (nested_type_identifier module: (identifier) @receiver name: (type_identifier) @ref)
  (type_identifier) @ref
`

const commonGrammar: Omit<Grammar, "query"> = {
  imports: importsOf,
  isExported: (head) => /\bexport\b|^(?:module\.)?exports\b/.test(head),
  kindOf: (kind, { node, head, container }) => {
    if (node.type === "assignment_expression") return kindOfAssignment(node, container)
    if (node.type !== "variable_declarator") return kind
    const value = node.childForFieldName("value")?.type
    if (value === "arrow_function" || value === "function_expression") return "function"
    if (value === "class") return "class"
    return /\bconst\b/.test(head) ? "constant" : "variable"
  },
}

export const javascript: Grammar = {
  ...commonGrammar,
  query: `${JAVASCRIPT_QUERY}${JSX_QUERY}
    (field_definition property: (_) @name value: [(arrow_function) (function_expression)]) @def.method`,
}
export const typescript: Grammar = { ...commonGrammar, query: TYPESCRIPT_QUERY }
export const tsx: Grammar = { ...commonGrammar, query: TYPESCRIPT_QUERY + JSX_QUERY }

/**
 * Returns the kind of `exports.f = function`, `A.prototype.m = function` or `this.m = () =>`. Inside another definition, only
 * assignments to `this` define something.
 */
function kindOfAssignment(node: Node, container: Container | undefined): DefinitionKind | undefined {
  const object = node.childForFieldName("left")?.childForFieldName("object")?.text ?? ""
  if ((container && object !== "this") || object === "module") return undefined
  if (!/^(?:[\w$]+(?:\.prototype)?|module\.exports)$/.test(object)) return undefined
  if (node.childForFieldName("right")?.type === "class") return "class"
  return /^(?:module\.)?exports$/.test(object) ? "function" : "method"
}

function importsOf(node: Node): Import[] {
  const line = startLineOf(node)
  if (node.type === "variable_declarator") return importsOfRequire(node, line)
  const source = node.childForFieldName("source")
  if (!source) return importsOfImportEquals(node, line)
  const module = unquote(source.text)
  if (node.type === "export_statement") return reexports(node, module, line)
  const clause = node.namedChildren.find((child) => child.type === "import_clause")
  // A module without an import clause is imported only for its side effects.
  if (!clause) return [{ module, name: "", as: "", line }]
  return clause.namedChildren.flatMap((child): Import[] => {
    if (child.type === "identifier") return [{ module, name: "default", as: child.text, line }]
    if (child.type === "namespace_import") return [{ module, name: "*", as: child.namedChild(0)?.text ?? "", line }]
    return child.namedChildren.filter(isSpecifier).map((specifier) => ({ module, ...namesOf(specifier), line }))
  })
}

function reexports(node: Node, module: string, line: number): Import[] {
  const clause = node.namedChildren.find((child) => child.type === "export_clause")
  if (clause) {
    const names = clause.namedChildren.filter(isSpecifier)
    return names.map((specifier) => ({ module, ...namesOf(specifier), line, reexport: true }))
  }
  const namespaceExport = node.namedChildren.find((child) => child.type === "namespace_export")
  return [{ module, name: "*", as: namespaceExport?.namedChild(0)?.text ?? "*", line, reexport: true }]
}

const isSpecifier = (node: Node) => node.type === "import_specifier" || node.type === "export_specifier"

function namesOf(specifier: Node): { name: string; as: string } {
  const name = specifier.childForFieldName("name")?.text ?? ""
  return { name, as: specifier.childForFieldName("alias")?.text ?? name }
}

/** Returns the imports of `const x = require("y")` and `const { a, b: c } = require("y")`. */
function importsOfRequire(node: Node, line: number): Import[] {
  const call = node.childForFieldName("value")
  const moduleNode = call?.childForFieldName("arguments")?.namedChild(0)
  const target = node.childForFieldName("name")
  if (call?.childForFieldName("function")?.text !== "require" || !moduleNode || !target) return []
  const module = unquote(moduleNode.text)
  if (target.type === "identifier") return [{ module, name: "*", as: target.text, line }]
  if (target.type !== "object_pattern") return []
  return target.namedChildren.flatMap((child): Import[] => {
    if (child.type === "shorthand_property_identifier_pattern")
      return [{ module, name: child.text, as: child.text, line }]
    if (child.type !== "pair_pattern") return []
    const name = child.childForFieldName("key")?.text ?? ""
    return [{ module, name, as: child.childForFieldName("value")?.text ?? name, line }]
  })
}

/** Returns the import of `import x = require("y")`. */
function importsOfImportEquals(node: Node, line: number): Import[] {
  const clause = node.namedChildren.find((child) => child.type === "import_require_clause")
  const source = clause?.childForFieldName("source")
  return source ? [{ module: unquote(source.text), name: "*", as: clause?.namedChild(0)?.text ?? "", line }] : []
}
