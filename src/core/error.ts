/** What a person can act on: says what happened and what to do next. Anything else that is thrown is a bug. */
export class DexError extends Error {
  override name = "DexError"
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** By name: the bundle holds this class in more than one file, and an error may come from another one than ours. */
export function isDexError(error: unknown): error is DexError {
  return error instanceof Error && error.name === "DexError"
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
