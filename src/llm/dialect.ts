/** What a server turned out not to accept. Learnt from its refusals, and kept for as long as the model is open. */
export type Dialect = Set<"max_tokens" | "temperature" | "response_format" | "stream_options">

const SIGNS = [
  // OpenAI's reasoning models: "Unsupported parameter: 'max_tokens' … Use 'max_completion_tokens' instead."
  ["max_tokens", /max_completion_tokens/],
  ["temperature", /temperature/],
  ["response_format", /response_format|json_schema|structured output/i],
  ["stream_options", /stream_options|include_usage/],
] as const

export function newDialect(): Dialect {
  return new Set()
}

/** True when the refusal says something new: the request is worth making again, in other words. */
export function learnFromRefusal(dialect: Dialect, status: number, said: string): boolean {
  if (status !== 400 && status !== 422) return false
  const sign = SIGNS.find(([name, pattern]) => !dialect.has(name) && pattern.test(said))
  if (sign) dialect.add(sign[0])
  return sign !== undefined
}

/** The request's body as this server takes it. */
export function spoken(dialect: Dialect, body: Record<string, unknown>): Record<string, unknown> {
  const { max_tokens, ...others } = body
  const said = dialect.has("max_tokens") ? { ...others, max_completion_tokens: max_tokens } : body
  return Object.fromEntries(Object.entries(said).filter(([name]) => !(dialect as Set<string>).has(name)))
}
