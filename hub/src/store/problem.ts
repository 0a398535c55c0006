/** What a caller did that cannot be done, with the HTTP status that says so. Anything else that is thrown is our fault. */
export class HubProblem extends Error {
  readonly status: number
  readonly code: string
  readonly rules: string[] | undefined

  constructor(status: number, code: string, message: string, rules?: string[]) {
    super(message)
    this.name = "HubProblem"
    this.status = status
    this.code = code
    this.rules = rules
  }
}
