/** An error that a person can act on: it says what happened and what to do next. Any other error is a bug. */
export class DexError extends Error {
  override name = "DexError"
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Checks the error's name instead of its class, because the bundle may contain the class in more than one file. */
export function isDexError(error: unknown): error is DexError {
  return error instanceof Error && error.name === "DexError"
}

/**
 * Converts an error about a full or failing disk into a readable one. Returns undefined for other errors. If SQLite has no room
 * for its own bookkeeping, it reports a full disk as an I/O error; `hasNoRoom` recognises that case.
 */
export function diskError(error: unknown, path: string, hasNoRoom: () => boolean): DexError | undefined {
  const code = codeOf(error)
  const isIoError = code.startsWith("SQLITE_IOERR")
  if (/^(SQLITE_FULL|ENOSPC|EDQUOT)$/.test(code) || (isIoError && hasNoRoom()))
    return new DexError(
      "disk_full",
      `The disk is full: ${path} could not be written. What was stored before is safe. Free some space and try again.`,
      { cause: error },
    )
  if (!isIoError && code !== "EFBIG" && code !== "EIO") return undefined
  return new DexError(
    "disk_error",
    `dex could not read or write ${path} (${messageOf(error)}). Check the disk's space and health, and your quota, then try again.`,
    { cause: error },
  )
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The error code of the system, Node or SQLite, such as `ENOENT` or `SQLITE_BUSY`. Empty if there is none. */
export function codeOf(error: unknown): string {
  const hasCode = typeof error === "object" && error !== null && "code" in error
  return hasCode && typeof error.code === "string" ? error.code : ""
}
