export const DEFINITION_KINDS = [
  "function",
  "method",
  "class",
  "struct",
  "interface",
  "trait",
  "enum",
  "type",
  "constant",
  "variable",
  "module",
  "macro",
] as const
export type DefinitionKind = (typeof DEFINITION_KINDS)[number]

/** A definition in code. Line numbers start at 1. */
export type Definition = {
  name: string
  kind: DefinitionKind
  /** The innermost class, module or function that contains the definition. */
  container?: string
  line: number
  end_line: number
  /** True if other files may use the definition; `default` if the file exports it without a name. */
  exported?: true | "default"
  /** The text of the deprecation notice, which may be empty. Absent if the definition is not deprecated. */
  deprecated?: string
  /** The first sentence of the comment above the definition. */
  doc?: string
}

/** One name that a file imports. `import * as fs` has the name `*`, `import React` the name `default`. */
export type Import = {
  module: string
  name: string
  /** The name under which the file uses the import. */
  as: string
  line: number
  /** True if the file re-exports the name. */
  reexport?: true
}

/** A use of a name. Several uses in one definition count once. */
export type Use = {
  name: string
  /** The text before the dot: `fs` in `fs.read()`, `a.b` in `a.b.c()`, `?` if it is not a plain name. */
  receiver?: string
  container?: string
  line: number
  kind: "call" | "reference"
}

export type FileFacts = { definitions: Definition[]; imports: Import[]; uses: Use[]; has_errors: boolean }

/** How a use was resolved: to a definition in the same file, to an import (by its index), or not at all. */
export type Via = { type: "local" } | { type: "import"; index: number } | { type: "unknown" }

/** A use that was resolved. `name` is the name at the definition, or `default` for an unnamed export. */
export type BoundUse = Use & { via: Via }
