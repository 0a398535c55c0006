/** A secret that is recognised only by its own form is at least this long. */
const SHORTEST = 16
const LONG_RUN = /[A-Za-z0-9_.~+-]{16}|[=:@]/

/** Whether a name needs to be redacted: most do not, and loading the rules takes time that a hook does not have. */
export function mayHoldSecret(name: string): boolean {
  return name.length >= SHORTEST && LONG_RUN.test(name)
}
