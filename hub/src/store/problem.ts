/** A request that cannot be fulfilled, with its HTTP status. Any other error is a bug in the hub, or the database is down. */
export class HubProblem extends Error {
  readonly status: number
  readonly code: string
  /** The redaction rules that matched. */
  readonly rules: string[] | undefined
  /** The number of seconds to wait before a retry. */
  readonly afterSeconds: number | undefined

  constructor(status: number, code: string, message: string, more: { rules?: string[]; afterSeconds?: number } = {}) {
    super(message)
    this.name = "HubProblem"
    this.status = status
    this.code = code
    this.rules = more.rules
    this.afterSeconds = more.afterSeconds ?? (status === 503 ? 1 : undefined)
  }
}
