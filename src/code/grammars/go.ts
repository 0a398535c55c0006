import type { Node } from "web-tree-sitter"
import type { Import } from "../../core/code.ts"
import { type Grammar, startLineOf, unquote } from "./grammar.ts"

// The query matches all identifiers in a constant or variable specification, because the field `name` of such a node contains
// only the first one.
export const go: Grammar = {
  query: `
    (comment) @comment
    [(type_declaration) (const_declaration) (var_declaration)] @wrap
    (function_declaration name: (_) @name) @def.function
    (method_declaration receiver: (_) @container name: (_) @name) @def.method
    (type_spec name: (_) @name) @def.type
    (type_alias name: (_) @name) @def.type
    (method_elem name: (_) @name) @def.method
    (source_file (const_declaration (const_spec (identifier) @name) @def.constant))
    (source_file (var_declaration (var_spec (identifier) @name) @def.variable))
    (source_file (var_declaration (var_spec_list (var_spec (identifier) @name) @def.variable)))
    (import_spec) @import
    (call_expression function: (identifier) @call)
    (call_expression function: (selector_expression operand: (_) @receiver field: (field_identifier) @call))
    (selector_expression operand: (identifier) @receiver field: (field_identifier) @ref)
    (qualified_type package: (_) @receiver name: (type_identifier) @ref)
    (identifier) @ref
    (type_identifier) @ref
  `,
  imports: importsOf,
  isExported: (_head, name) => /^\p{Lu}/u.test(name),
  kindOf: (kind, { node }) => {
    if (node.type !== "type_spec") return kind
    const type = node.childForFieldName("type")?.type
    return type === "struct_type" ? "struct" : type === "interface_type" ? "interface" : "type"
  },
}

/**
 * Returns the import of one import specification. Without an alias, a package is named after the last part of its path that is
 * not a version.
 */
function importsOf(node: Node): Import[] {
  const module = unquote(node.childForFieldName("path")?.text ?? "")
  const parts = module.split("/")
  const packageName = parts.findLast((part, i) => i === 0 || !/^v\d+$/.test(part)) ?? module
  const localName = node.childForFieldName("name")?.text ?? packageName.replace(/^go-|\.v\d+$/g, "")
  return [{ module, name: "*", as: localName === "." ? "*" : localName, line: startLineOf(node) }]
}
