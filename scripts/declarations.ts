import type { Schema } from "../src/core/schema.ts"
import { LIBRARY_TOOLS } from "../src/library/offered.ts"

// The library's types, made from the same declarations as the reference page.

export function libraryDeclarations(): string {
  const tools = Object.entries(LIBRARY_TOOLS).map(([name, tool]) => {
    const input = typeOf(tool.input as Schema, 1)
    const isOptional = ((tool.input as Schema).required ?? []).length === 0
    const output = typeOf(tool.output as Schema, 1)
    return `  /** ${tool.summary}. */\n  ${name}(input${isOptional ? "?" : ""}: ${input}): Promise<${output}>\n`
  })
  return `/** Experimental: it may change with any version. */
export type Dex = {
${tools.join("")}  /** Closes what was opened. */
  close(): void
}

export type DexOptions = {
  /** The home folder whose \`.dex\` is asked. The user's own, unless it is said. */
  home?: string
  /** Whose project counts as the current one. */
  cwd?: string
}

export declare function openDex(options?: DexOptions): Dex
`
}

function typeOf(schema: Schema, depth: number): string {
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ")
  if (schema.type === "integer" || schema.type === "number") return "number"
  if (schema.type === "string" || schema.type === "boolean") return schema.type
  if (schema.type === "array") return `Array<${schema.items ? typeOf(schema.items, depth) : "unknown"}>`
  if (schema.properties === undefined) {
    const values =
      typeof schema.additionalProperties === "object" ? typeOf(schema.additionalProperties, depth) : "unknown"
    return `Record<string, ${values}>`
  }
  const indent = "  ".repeat(depth + 1)
  const fields = Object.entries(schema.properties).map(([name, field]) => {
    const mark = schema.required?.includes(name) ? "" : "?"
    const about = field.description ? `${indent}/** ${field.description.replaceAll("*/", "*\\/")} */\n` : ""
    return `${about}${indent}${name}${mark}: ${typeOf(field, depth + 1)}\n`
  })
  return `{\n${fields.join("")}${"  ".repeat(depth)}}`
}

if (import.meta.main) process.stdout.write(libraryDeclarations())
