/** What a caller did that cannot be done, with the HTTP status that says so. Anything else that is thrown is our fault. */
export class HubProblem extends Error {
  readonly status: number
  readonly code: string
  /** Which of the redaction's found something. */
  readonly rules: string[] | undefined
  /** When it is worth trying again. */
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
