import type { Node } from "web-tree-sitter"
import type { DefinitionKind, Import } from "../../core/code.ts"

/**
 * How one language says what dex wants to know. The query's captures have fixed names:
 * `@def.<kind>` with `@name` (and `@container` where the language names it) is a definition, `@scope` a container alone; `@comment` and `@mark`
 * (attribute, decorator) above it belong to it; `@wrap` is around one and belongs to it, as `export` and
 * decorators do; `@docstring` belongs to the definition around it; `@warns` says that
 * the definition around it warns of its own use; `@import` goes to `imports`; `@call` and `@ref`, with `@receiver`
 * where one is written, are uses.
 */
export type Grammar = {
  query: string
  /** None for what only looked like an import. */
  imports(node: Node): Import[]
  /** Said by what stands before the name, or by the name itself. */
  isExported(head: string, name: string): boolean
  /** A kind that the query alone cannot tell; undefined for what is no definition there. */
  kindOf?(kind: DefinitionKind, known: Known): DefinitionKind | undefined
}

export type Known = { node: Node; head: string; name: string; container: Container | undefined }

/** `scope` is a part of something that is defined elsewhere, such as an `impl` in Rust. */
export type Container = { kind: DefinitionKind | "scope"; name: string }

const HOLDS_METHODS = new Set<Container["kind"]>(["class", "struct", "interface", "trait", "enum", "scope"])
export const holdsMethods = (container: Container | undefined): boolean =>
  container !== undefined && HOLDS_METHODS.has(container.kind)

export const startLine = (node: Node): number => node.startPosition.row + 1

/** A string literal without its quotes. */
export const unquoted = (text: string): string => text.replace(/^[a-z]*["'`<]+|["'`>]+$/gi, "")
