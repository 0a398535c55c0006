import type { Node } from "web-tree-sitter"
import type { Import } from "../../core/code.ts"
import { canContainMethods, type Grammar, startLineOf, unquote } from "./grammar.ts"

// The languages in which dex finds definitions, imports, comments and marks, but no uses of names.

const alwaysExported = () => true
const hasPublicKeyword = (head: string) => /\bpublic\b/.test(head)

export const rust: Grammar = {
  query: `
    [(line_comment) (block_comment)] @comment
    (attribute_item) @mark
    (function_item name: (_) @name) @def.function
    (function_signature_item name: (_) @name) @def.function
    (struct_item name: (_) @name) @def.struct
    (union_item name: (_) @name) @def.struct
    (enum_item name: (_) @name) @def.enum
    (trait_item name: (_) @name) @def.trait
    (type_item name: (_) @name) @def.type
    (mod_item name: (_) @name) @def.module
    (macro_definition name: (_) @name) @def.macro
    (source_file (const_item name: (_) @name) @def.constant)
    (source_file (static_item name: (_) @name) @def.variable)
    (impl_item type: (_) @name) @scope
    (use_declaration) @import
  `,
  imports: (node) => importOfModule(node, /^(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]*)/),
  isExported: (head) => /\bpub\b/.test(head),
  kindOf: (kind, { container }) => (kind === "function" && canContainMethods(container) ? "method" : kind),
}

export const java: Grammar = {
  query: `
    [(line_comment) (block_comment)] @comment
    (class_declaration name: (_) @name) @def.class
    (record_declaration name: (_) @name) @def.class
    (interface_declaration name: (_) @name) @def.interface
    (annotation_type_declaration name: (_) @name) @def.interface
    (enum_declaration name: (_) @name) @def.enum
    (method_declaration name: (_) @name) @def.method
    (constructor_declaration name: (_) @name) @def.method
    (import_declaration) @import
  `,
  imports: (node) => importOfName(node, /^import\s+(?:static\s+)?([\w.*]+)/, "."),
  isExported: hasPublicKeyword,
}

export const csharp: Grammar = {
  query: `
    (comment) @comment
    (namespace_declaration name: (_) @name) @def.module
    (class_declaration name: (_) @name) @def.class
    (record_declaration name: (_) @name) @def.class
    (struct_declaration name: (_) @name) @def.struct
    (interface_declaration name: (_) @name) @def.interface
    (enum_declaration name: (_) @name) @def.enum
    (delegate_declaration name: (_) @name) @def.type
    (method_declaration name: (_) @name) @def.method
    (constructor_declaration name: (_) @name) @def.method
    (property_declaration name: (_) @name) @def.variable
    (using_directive) @import
  `,
  imports: (node) => importOfModule(node, /^(?:global\s+)?using\s+(?:static\s+)?(?:\w+\s*=\s*)?([\w.]+)/),
  isExported: hasPublicKeyword,
}

const cppFunction = (declarator: string, kind: string) =>
  ["", "pointer_declarator", "reference_declarator"]
    .map((wrapper) => {
      const inner = `(function_declarator declarator: ${declarator} @name)`
      return wrapper === ""
        ? `(function_definition declarator: ${inner}) @def.${kind}`
        : `(function_definition declarator: (${wrapper} ${wrapper === "reference_declarator" ? "" : "declarator: "}${inner})) @def.${kind}`
    })
    .join("\n")

export const cpp: Grammar = {
  query: `
    (comment) @comment
    (template_declaration) @wrap
    (namespace_definition name: (_) @name) @def.module
    (class_specifier name: (_) @name body: (_)) @def.class
    (struct_specifier name: (_) @name body: (_)) @def.struct
    (union_specifier name: (_) @name body: (_)) @def.struct
    (enum_specifier name: (_) @name body: (_)) @def.enum
    (type_definition declarator: (type_identifier) @name) @def.type
    (alias_declaration name: (_) @name) @def.type
    (preproc_def name: (_) @name) @def.macro
    (preproc_function_def name: (_) @name) @def.macro
    ${cppFunction("(identifier)", "function")}
    ${cppFunction("(field_identifier)", "method")}
    ${cppFunction("(qualified_identifier)", "method")}
    (field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @def.method
    (preproc_include) @import
  `,
  imports: (node) => {
    const path = node.childForFieldName("path")
    if (!path) return []
    const module = path.type === "string_literal" ? `./${unquote(path.text)}` : path.text
    return [{ module, name: "*", as: "*", line: startLineOf(node), reexport: true }]
  },
  isExported: (head) => !/\bstatic\b/.test(head),
}

export const php: Grammar = {
  query: `
    (comment) @comment
    (namespace_definition name: (_) @name) @def.module
    (class_declaration name: (_) @name) @def.class
    (interface_declaration name: (_) @name) @def.interface
    (trait_declaration name: (_) @name) @def.trait
    (enum_declaration name: (_) @name) @def.enum
    (function_definition name: (_) @name) @def.function
    (method_declaration name: (_) @name) @def.method
    (const_declaration) @wrap
    (program (const_declaration (const_element (name) @name) @def.constant))
    (namespace_use_declaration) @import
  `,
  imports: (node) => importOfName(node, /^use\s+(?:function\s+|const\s+)?([\w\\]+)/, "\\"),
  isExported: (head) => !/\b(?:private|protected)\b/.test(head),
}

export const ruby: Grammar = {
  query: `
    (comment) @comment
    (module name: (_) @name) @def.module
    (class name: (_) @name) @def.class
    (method name: (_) @name) @def.method
    (singleton_method name: (_) @name) @def.method
    (assignment left: (constant) @name) @def.constant
    (call method: (identifier) @require arguments: (argument_list (string)) (#match? @require "^require(_relative)?$")) @import
  `,
  imports: (node) => {
    const match = /^(require|require_relative)\b[\s(]*["']([^"']+)["']/.exec(node.text)
    if (!match) return []
    const module = match[1] === "require_relative" && !match[2]!.startsWith(".") ? `./${match[2]}` : match[2]!
    return [{ module, name: "*", as: "*", line: startLineOf(node) }]
  },
  isExported: alwaysExported,
  kindOf: (kind, { container }) => (kind === "method" && !container ? "function" : kind),
}

export const bash: Grammar = {
  query: `
    (comment) @comment
    (function_definition name: (_) @name) @def.function
    (command name: (command_name (word) @source) (#any-of? @source "source" ".")) @import
  `,
  imports: (node) => importOfModule(node, /^(?:source|\.)\s+["']?([^\s"';]+)/),
  isExported: alwaysExported,
}

export const powershell: Grammar = {
  query: `
    (comment) @comment
    (function_statement (function_name) @name) @def.function
    (class_statement (simple_name) @name) @def.class
    (enum_statement (simple_name) @name) @def.enum
    (class_method_definition (simple_name) @name) @def.method
  `,
  imports: () => [],
  isExported: alwaysExported,
}

/** Returns an import of everything from a module, without a local name. */
function importOfModule(node: Node, pattern: RegExp): Import[] {
  const module = pattern.exec(node.text)?.[1]?.replace(/\s+/g, " ").trim().slice(0, 500)
  return module ? [{ module, name: "*", as: "*", line: startLineOf(node) }] : []
}

function importOfName(node: Node, pattern: RegExp, separator: string): Import[] {
  const path = pattern.exec(node.text)?.[1]
  if (!path) return []
  const separatorStart = path.lastIndexOf(separator)
  const name = path.slice(separatorStart + 1)
  return [
    { module: separatorStart < 0 ? path : path.slice(0, separatorStart), name, as: name, line: startLineOf(node) },
  ]
}
