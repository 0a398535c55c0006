import { byName } from "./by-name.ts"

/**
 * The shape of a tool's input or output: JSON Schema as plain data, with its TypeScript type. The CLI derives flags from it, MCP
 * and HTTP publish it, and the reference page is generated from it. A schema library would do the same, but add 25 to 35 ms to
 * every start.
 */
export type Schema<T = unknown> = {
  type: "string" | "integer" | "number" | "boolean" | "array" | "object"
  description?: string
  enum?: readonly string[]
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  readonly [OPTIONAL]?: boolean
  readonly [TYPE]?: T
}

declare const TYPE: unique symbol
const OPTIONAL = Symbol("optional")

export type Infer<S> = S extends Schema<infer T> ? T : never
type Shape = Record<string, Schema>
type OptionalKeys<P extends Shape> = { [K in keyof P]: undefined extends Infer<P[K]> ? K : never }[keyof P]
type Flat<T> = { [K in keyof T]: T[K] }
type ObjectOf<P extends Shape> = Flat<
  { [K in Exclude<keyof P, OptionalKeys<P>>]: Infer<P[K]> } & {
    [K in OptionalKeys<P>]?: Exclude<Infer<P[K]>, undefined>
  }
>

export const text = (description?: string, limits: { minLength?: number } = {}): Schema<string> => ({
  type: "string",
  ...descriptionField(description),
  ...limits,
})
export const integer = (description?: string, limits: { minimum?: number; maximum?: number } = {}): Schema<number> => ({
  type: "integer",
  ...descriptionField(description),
  ...limits,
})
export const decimal = (description?: string): Schema<number> => ({ type: "number", ...descriptionField(description) })
export const flag = (description?: string): Schema<boolean> => ({ type: "boolean", ...descriptionField(description) })
export const choice = <const C extends readonly string[]>(values: C, description?: string): Schema<C[number]> => ({
  type: "string",
  enum: values,
  ...descriptionField(description),
})
export const listOf = <S extends Schema>(items: S, description?: string): Schema<Infer<S>[]> => ({
  type: "array",
  items,
  ...descriptionField(description),
})
export const mapOf = <S extends Schema>(values: S, description?: string): Schema<Record<string, Infer<S>>> => ({
  type: "object",
  additionalProperties: values,
  ...descriptionField(description),
})
export const optional = <S extends Schema>(schema: S): Schema<Infer<S> | undefined> =>
  ({ ...schema, [OPTIONAL]: true }) as Schema<Infer<S> | undefined>
/** Gives a field a default, so that the caller may omit it but the tool always receives a value. */
export const withDefault = <S extends Schema>(schema: S, value: Infer<S>): S => ({ ...schema, default: value })

export function object<P extends Shape>(properties: P, description?: string): Schema<ObjectOf<P>> {
  const required = Object.keys(properties).filter(
    (name) => !properties[name]![OPTIONAL] && properties[name]!.default === undefined,
  )
  return { type: "object", properties, required, additionalProperties: false, ...descriptionField(description) }
}

function descriptionField(description: string | undefined): { description?: string } {
  return description === undefined ? {} : { description }
}

/** Returns the value with its defaults filled in, or a readable description of what is wrong with it. */
export function readAs<T>(schema: Schema<T>, value: unknown): { ok: T } | { wrong: string } {
  const problem = { text: "" }
  const result = check(schema, value, "", problem)
  return problem.text === "" ? { ok: result as T } : { wrong: problem.text }
}

function check(schema: Schema, value: unknown, path: string, problem: { text: string }): unknown {
  const fail = (text: string): undefined => {
    problem.text ||= `${path || "input"} ${text}`
  }
  switch (schema.type) {
    case "string":
      if (typeof value !== "string") return fail("must be text")
      if (schema.enum && !schema.enum.includes(value)) return fail(`must be one of: ${schema.enum.join(", ")}`)
      if (schema.minLength && value.trim().length < schema.minLength) return fail("must not be empty")
      return value
    case "integer":
    case "number":
      if (
        typeof value !== "number" ||
        !Number.isFinite(value) ||
        (schema.type === "integer" && !Number.isSafeInteger(value))
      )
        return fail(schema.type === "integer" ? "must be a whole number" : "must be a number")
      if (schema.minimum !== undefined && value < schema.minimum) return fail(`must be at least ${schema.minimum}`)
      if (schema.maximum !== undefined && value > schema.maximum) return fail(`must be at most ${schema.maximum}`)
      return value
    case "boolean":
      return typeof value === "boolean" ? value : fail("must be true or false")
    case "array":
      if (!Array.isArray(value)) return fail("must be a list")
      return value.map((item, index) => check(schema.items!, item, `${path}[${index}]`, problem))
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value)
        ? checkObject(schema, value as Record<string, unknown>, path, problem)
        : fail("must be an object")
  }
}

function checkObject(
  schema: Schema,
  value: Record<string, unknown>,
  where: string,
  problem: { text: string },
): Record<string, unknown> {
  const name = (key: string) => (where === "" ? key : `${where}.${key}`)
  const result: Record<string, unknown> = {}
  for (const [key, inner] of Object.entries(schema.properties ?? {})) {
    const field = byName(value, key)
    if (field !== undefined) result[key] = check(inner, field, name(key), problem)
    else if (inner.default !== undefined) result[key] = inner.default
    else if (schema.required?.includes(key)) problem.text ||= `${name(key)} is missing`
  }
  for (const key of Object.keys(value)) {
    if (byName(schema.properties ?? {}, key) !== undefined || value[key] === undefined) continue
    if (typeof schema.additionalProperties === "object")
      result[key] = check(schema.additionalProperties, value[key], name(key), problem)
    else if (schema.additionalProperties === true) result[key] = value[key]
    else problem.text ||= `${name(key)} is not known`
  }
  return result
}
