/** No secret is shorter where nothing but its own form gives it away. */
const SHORTEST = 16
const LONG_RUN = /[A-Za-z0-9_.~+-]{16}|[=:@]/

/** Whether a name is worth looking at: most are not, and loading the rules takes a hook's time. */
export function mayHoldSecret(name: string): boolean {
  return name.length >= SHORTEST && LONG_RUN.test(name)
}
