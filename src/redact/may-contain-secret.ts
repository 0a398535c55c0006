/** The minimum length of a secret that is recognised by its form alone. */
const MIN_LENGTH = 16
const LONG_RUN = /[A-Za-z0-9_.~+-]{16}|[=:@]/

/** Whether a name may need redaction. Most names do not, so hooks, which have little time, seldom have to load the rules. */
export function mayContainSecret(name: string): boolean {
  return name.length >= MIN_LENGTH && LONG_RUN.test(name)
}
