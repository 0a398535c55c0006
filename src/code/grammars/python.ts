import type { Node } from "web-tree-sitter"
import type { Import } from "../../core/code.ts"
import { canContainMethods, type Grammar, startLineOf } from "./grammar.ts"

export const python: Grammar = {
  query: `
    (comment) @comment
    (decorated_definition) @wrap
    (function_definition name: (_) @name) @def.function
    (class_definition name: (_) @name) @def.class
    (assignment left: (identifier) @name) @def.variable
    (assignment left: (pattern_list (identifier) @name)) @def.variable
    (type_alias_statement left: (type (identifier) @name)) @def.type
    (function_definition body: (block . (expression_statement (string) @docstring)))
    (class_definition body: (block . (expression_statement (string) @docstring)))
    (function_definition body: (block (expression_statement
      (call arguments: (argument_list (identifier) @warns)))) (#eq? @warns "DeprecationWarning"))
    (import_statement) @import
    (import_from_statement) @import
    (call function: (identifier) @call)
    (call function: (attribute object: (_) @receiver attribute: (identifier) @call))
    (decorator (identifier) @call)
    (decorator (attribute object: (_) @receiver attribute: (identifier) @call))
    (attribute object: (identifier) @receiver attribute: (identifier) @ref)
    (identifier) @ref
  `,
  imports: importsOf,
  isExported: (_head, name) => !name.startsWith("_"),
  kindOf: (kind, { name, container }) => {
    if (kind === "function") return canContainMethods(container) ? "method" : "function"
    // Variables inside functions and classes do not count as definitions.
    if (kind === "variable" && container) return undefined
    return kind === "variable" && /^[A-Z][A-Z0-9_]*$/.test(name) ? "constant" : kind
  },
}

function importsOf(node: Node): Import[] {
  const line = startLineOf(node)
  const nameNodes = node.childrenForFieldName("name").filter((child) => child !== null)
  if (node.type === "import_statement") {
    // `import a.b` creates the name `a`, through which `a.b` is found; `import a.b as c` creates `c`.
    return nameNodes.map((child) => {
      const alias = child.childForFieldName("alias")?.text
      const module = child.childForFieldName("name")?.text ?? child.text
      return { module, name: "*", as: alias ?? module, line }
    })
  }
  const module = node.childForFieldName("module_name")?.text ?? ""
  if (node.namedChildren.some((child) => child.type === "wildcard_import"))
    return [{ module, name: "*", as: "*", line, reexport: true }]
  return nameNodes.map((child) => {
    const name = child.childForFieldName("name")?.text ?? child.text
    return { module, name, as: child.childForFieldName("alias")?.text ?? name, line }
  })
}
