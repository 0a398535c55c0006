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
  /** The class, module or function that it stands in, innermost only. */
  container?: string
  line: number
  end_line: number
  /** Others may use it; `default` where it is what its file exports without a name. */
  exported?: true | "default"
  /** Present when it is marked so: what the mark says, or an empty text. */
  deprecated?: string
  /** The first sentence of what is written above it. */
  doc?: string
}

/** One name that one file takes from elsewhere. `import * as fs` has the name `*`, `import React` the name `default`. */
export type Import = {
  module: string
  name: string
  /** What this file calls it. */
  as: string
  line: number
  /** Handed on to those who import this file. */
  reexport?: true
}

/** A use of a name, once for each definition that uses it. */
export type Use = {
  name: string
  /** What stands before the dot: `fs` in `fs.read()`, `a.b` in `a.b.c()`, `?` where it is no plain name. */
  receiver?: string
  container?: string
  line: number
  kind: "call" | "reference"
}

export type FileFacts = { definitions: Definition[]; imports: Import[]; uses: Use[]; has_errors: boolean }

/** How far a use is known: the file's own definition, the import that brought it (by its place), or its name alone. */
export type Via = { type: "local" } | { type: "import"; index: number } | { type: "unknown" }

/** `name` is what the use is called where it is defined: `default` for what a file exports without a name. */
export type BoundUse = Use & { via: Via }
