import type { Node } from "web-tree-sitter"
import type { DefinitionKind, Import } from "../../core/code.ts"

/**
 * The query and rules of one language. The query's captures have fixed names: `@def.<kind>` with `@name` (and `@container` if the
 * language names it) is a definition, and `@scope` is only a container. `@comment` and `@mark` (attribute, decorator) above a
 * definition belong to it; `@wrap`, such as `export`, encloses a definition and belongs to it; `@docstring` belongs to the
 * definition around it; `@warns` marks the definition around it as deprecated. `@import` is passed to `imports`. `@call` and
 * `@ref`, with `@receiver` if there is one, are uses.
 */
export type Grammar = {
  query: string
  /** Returns an empty list if the node turns out not to be an import. */
  imports(node: Node): Import[]
  /** `head` is the text of the definition before its name. */
  isExported(head: string, name: string): boolean
  /** Corrects a kind that the query alone cannot determine. Returns undefined if the node is not a definition. */
  kindOf?(kind: DefinitionKind, context: KindContext): DefinitionKind | undefined
}

export type KindContext = { node: Node; head: string; name: string; container: Container | undefined }

/** The kind `scope` is for code that extends something defined elsewhere, such as an `impl` in Rust. */
export type Container = { kind: DefinitionKind | "scope"; name: string }

const METHOD_CONTAINERS = new Set<Container["kind"]>(["class", "struct", "interface", "trait", "enum", "scope"])
export const canContainMethods = (container: Container | undefined): boolean =>
  container !== undefined && METHOD_CONTAINERS.has(container.kind)

export const startLineOf = (node: Node): number => node.startPosition.row + 1

/** Removes the quotes of a string literal. */
export const unquote = (text: string): string => text.replace(/^[a-z]*["'`<]+|["'`>]+$/gi, "")
