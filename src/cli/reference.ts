import type { Schema } from "../core/schema.ts"
import type { Tool } from "../core/tool.ts"
import { flagsOf, screenOptions } from "./args.ts"
import { asForm } from "./forms.ts"

/** The reference page, generated from the same tool definitions as the commands. */
export function referencePage(tools: readonly Tool<never>[]): string {
  const intro = [
    "# Reference",
    "",
    "Generated from the tool declarations by `npm run reference`; do not edit. Every command takes `--help`, and",
    "all but `serve`, `mcp`, `hook`, `pick` and `completions` take `--json`. Results go",
    "to stdout, everything else to stderr. Exit codes: 0 found, 1 nothing found, 2 error.",
    "",
  ]
  return [...intro, ...tools.map(asForm).flatMap(section)].join("\n")
}

function section(tool: Tool<never>): string[] {
  const lines = [`## dex ${tool.name}`, "", `${tool.summary}.`, ""]
  if (tool.cli.aliases) lines.push(`Also: ${tool.cli.aliases.map((alias) => `\`dex ${alias}\``).join(", ")}.`, "")
  const forms = Object.entries(tool.cli.forms ?? {}).map(([form, summary]) => `${form} # ${summary}`)
  lines.push("```sh", tool.cli.example, ...forms, "```", "")
  const rows = flagsOf(tool)
    .filter(({ path }) => path.join(".") !== tool.cli.rest)
    .map(
      (flag) =>
        `| ${flag.shorts.map((letter) => `\`-${letter}\` `).join("")}\`--${flag.name}\` | ${typeName(flag.schema)} | ${flag.schema.default === undefined ? "" : `\`${String(flag.schema.default)}\``} | ${flag.schema.description ?? ""} |`,
    )
  rows.push(
    ...screenOptions(tool).map(
      ([name, text]) => `| \`--${name}\` | switch | | ${text.replace("$PAGER", "`$PAGER`")} |`,
    ),
  )
  const words = [tool.cli.positional, tool.cli.rest].filter((field) => field !== undefined)
  rows.unshift(
    ...words.map((field) => {
      const schema = tool.input.properties![field]!
      return `| \`${field}\` | ${typeName(schema)} | | ${schema.description ?? ""} |`
    }),
  )
  if (rows.length > 0) lines.push("| input | type | default | |", "|---|---|---|---|", ...rows, "")
  lines.push("Output:", "", "```ts", shapeOf(tool.output), "```", "")
  if (tool.mcp) lines.push(`For agents: \`${tool.mcp.name}\`. ${tool.mcp.description}`, "")
  return lines
}

function typeName(schema: Schema): string {
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(", ")
  if (schema.type === "array") return "several"
  return { string: "text", integer: "number", number: "number", boolean: "switch", object: "object" }[schema.type]
}

function shapeOf(schema: Schema, indent = ""): string {
  if (schema.enum) return schema.enum.map((value) => `"${value}"`).join(" | ")
  if (schema.type === "array") return `${shapeOf(schema.items!, indent)}[]`
  if (schema.type !== "object") return schema.type === "integer" ? "number" : schema.type
  if (typeof schema.additionalProperties === "object")
    return `Record<string, ${shapeOf(schema.additionalProperties, indent)}>`
  const fields = Object.entries(schema.properties ?? {}).map(([name, inner]) => {
    const note = inner.description ? ` // ${inner.description}` : ""
    return `${indent}  ${name}${schema.required?.includes(name) ? "" : "?"}: ${shapeOf(inner, `${indent}  `)}${note}`
  })
  return fields.length === 0 ? "{}" : `{\n${fields.join("\n")}\n${indent}}`
}
