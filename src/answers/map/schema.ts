import { DexError } from "../../core/error.ts"
import { listOf, object, type Schema, text } from "../../core/schema.ts"

// The shape of a model's answer: an object with lists of items, each with its refs.

export type MapItem = Record<string, unknown> & { refs: string[] }
export type MapResult = Record<string, unknown>

const REFS_FIELD = listOf(text(), "Refs of the messages this stands on, as in the data: source:id#number.")

export const DEFAULT_SCHEMA: Schema = object({
  items: listOf(object({ text: text(undefined, { minLength: 1 }), refs: REFS_FIELD })),
})

/** The names of the schema's fields that are lists of items. */
export function listsOf(schema: Schema): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, { type, items }]) =>
    type === "array" && items?.type === "object" ? [name] : [],
  )
}

export function itemsOf(result: MapResult, name: string): MapItem[] {
  return (result[name] ?? []) as MapItem[]
}

export function itemRefs(result: MapResult, schema: Schema): string[] {
  return listsOf(schema).flatMap((name) => itemsOf(result, name).flatMap((item) => item.refs))
}

export function countItems(result: MapResult, schema: Schema): number {
  return listsOf(schema).reduce((sum, name) => sum + itemsOf(result, name).length, 0)
}

/**
 * Reads a schema that a person wrote. Keywords that dex does not check are refused, because ignoring a rule would be misleading.
 * Every item gets a required `refs` field.
 */
export function readSchema(value: unknown, file: string): Schema {
  const schema = parseSchema(value, "", file)
  if (schema.type !== "object" || listsOf(schema).length === 0)
    throw schemaError(file, "must be an object with at least one list of objects, such as the items to find")
  for (const name of listsOf(schema)) {
    const items = schema.properties![name]!.items!
    items.properties = { ...items.properties, refs: REFS_FIELD }
    items.required = [...new Set([...(items.required ?? []), "refs"])]
  }
  return schema
}

const COMMON_KEYWORDS = ["type", "description"]
const KEYWORDS_BY_TYPE: Record<string, string[]> = {
  string: ["enum", "minLength"],
  integer: ["minimum", "maximum"],
  number: ["minimum", "maximum"],
  boolean: [],
  array: ["items"],
  object: ["properties", "required"],
}
/** Keywords that have no effect, or that dex enforces anyway. */
const IGNORED_KEYWORDS = ["$schema", "$id", "title", "additionalProperties"]

function parseSchema(value: unknown, path: string, file: string): Schema {
  const place = path === "" ? "the schema" : path
  if (!isObject(value)) throw schemaError(file, `${place} must be an object`)
  const { type, description, properties, items, required } = value
  const keywords =
    typeof type === "string" && Object.hasOwn(KEYWORDS_BY_TYPE, type) ? KEYWORDS_BY_TYPE[type]! : undefined
  if (!keywords) throw schemaError(file, `${place} needs a type: ${Object.keys(KEYWORDS_BY_TYPE).join(", ")}`)
  const allowed = [...COMMON_KEYWORDS, ...keywords]
  const unsupportedKey = Object.keys(value).find((key) => !allowed.includes(key) && !IGNORED_KEYWORDS.includes(key))
  if (unsupportedKey !== undefined)
    throw schemaError(
      file,
      `${place} uses "${unsupportedKey}", which dex does not check there. Allowed keywords: ${allowed.join(", ")}`,
    )
  const undescribedName = Array.isArray(required)
    ? required.find((name) => !(isObject(properties) && Object.hasOwn(properties, String(name))))
    : undefined
  if (undescribedName !== undefined)
    throw schemaError(file, `${place} requires "${undescribedName}", which its properties do not describe`)
  if (isObject(value.additionalProperties))
    throw schemaError(file, `${place} has a schema for additionalProperties, which dex does not check`)
  const limits = Object.fromEntries(
    Object.entries(value).filter(
      ([key, inner]) => ["minimum", "maximum", "minLength"].includes(key) && typeof inner === "number",
    ),
  )
  return {
    type: type as Schema["type"],
    description: typeof description === "string" ? description : undefined,
    ...limits,
    enum: Array.isArray(value.enum) ? value.enum.map(String) : undefined,
    items: type === "array" ? parseSchema(items ?? { type: "string" }, `${path}[]`, file) : undefined,
    ...(type === "object" && {
      properties: Object.fromEntries(
        Object.entries(isObject(properties) ? properties : {}).map(([key, inner]) => [
          key,
          parseSchema(inner, path === "" ? key : `${path}.${key}`, file),
        ]),
      ),
      required: Array.isArray(required) ? required.map(String) : [],
      additionalProperties: false,
    }),
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

function schemaError(file: string, problem: string): DexError {
  return new DexError("bad_schema", `${file}: ${problem}. See docs/map.md.`)
}
