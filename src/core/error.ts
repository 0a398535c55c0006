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

/**
 * What a disk that is full, or fails, is to a person. Undefined where it is something else. SQLite calls both an I/O error
 * when it has no room for its own bookkeeping, so who can look says which it is.
 */
export function diskError(error: unknown, path: string, hasNoRoom: () => boolean): DexError | undefined {
  const code = codeOf(error)
  const isFailing = code.startsWith("SQLITE_IOERR")
  if (/^(SQLITE_FULL|ENOSPC|EDQUOT)$/.test(code) || (isFailing && hasNoRoom()))
    return new DexError(
      "disk_full",
      `The disk is full: ${path} could not be written. What was stored before is safe. Free some space and try again.`,
      { cause: error },
    )
  if (!isFailing && code !== "EFBIG" && code !== "EIO") return undefined
  return new DexError(
    "disk_error",
    `The disk did not take or give what dex keeps in ${path} (${messageOf(error)}). Check its space, your quota and its health, then try again.`,
    { cause: error },
  )
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** What the system, Node or SQLite calls it: `ENOENT`, `SQLITE_BUSY`. Empty if it has no such name. */
export function codeOf(error: unknown): string {
  const hasCode = typeof error === "object" && error !== null && "code" in error
  return hasCode && typeof error.code === "string" ? error.code : ""
}
