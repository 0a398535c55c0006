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

/** Lines are counted from 1. */
export type Definition = {
  name: string
  kind: DefinitionKind
  /** The innermost class, module or function around it. */
  container?: string
  line: number
  end_line: number
  /** True if other files may use it; `default` if its file exports it without a name. */
  exported?: true | "default"
  /** The text of its deprecation mark, which may be empty. Absent if it is not deprecated. */
  deprecated?: string
  /** The first sentence of the comment above it. */
  doc?: string
}

/** One name that a file imports. `import * as fs` has the name `*`, `import React` the name `default`. */
export type Import = {
  module: string
  name: string
  /** The local name. */
  as: string
  line: number
  /** True if the file exports it again. */
  reexport?: true
}

/** A use of a name, once for each definition that uses it. */
export type Use = {
  name: string
  /** The text before the dot: `fs` in `fs.read()`, `a.b` in `a.b.c()`, `?` if it is not a plain name. */
  receiver?: string
  container?: string
  line: number
  kind: "call" | "reference"
}

export type FileFacts = { definitions: Definition[]; imports: Import[]; uses: Use[]; has_errors: boolean }

/** How a use was resolved: to the file's own definition, to an import (by its index), or only by its name. */
export type Via = { type: "local" } | { type: "import"; index: number } | { type: "unknown" }

/** `name` is the name at the definition: `default` for a file's unnamed export. */
export type BoundUse = Use & { via: Via }
