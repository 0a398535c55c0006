import type { Span } from "./rules.ts"
import { isPlaceholder, looksRandom } from "./values.ts"

// Finds passwords that commands accept as short flags or from a pipe: `curl -u user:password`, `mysql -pPassword`, `sshpass -p
// password`, `echo password | sudo -S`.

/**
 * Commands that accept a password as a flag or, if `cookie` is set, a cookie. `flag` matches from the space before the flag to
 * the end of the password.
 */
const PASSWORD_FLAGS: { command: string; flag: RegExp; cookie?: true }[] = [
  passwordFlag("curl", "(?:-u|--user|-U|--proxy-user)[ =]?", "[^\\s:\"'\\\\]{1,100}:", 3),
  { ...passwordFlag("curl", "-b ?", "[\\w.-]{3,30}=", 16), cookie: true },
  passwordFlag("sshpass", "-p ?", "", 3),
  passwordFlag("mysql(?:dump|admin)?", "-p", "(?=[^\\s-])"),
  passwordFlag("redis-cli", "-a "),
  passwordFlag("(?:docker|podman|az) login", "-p "),
  passwordFlag("mongo(?:sh|dump|restore|export|import)?", "-p "),
  passwordFlag("psexec(?:\\.exe)?", "-p "),
  passwordFlag("(?:un)?zip", "-P ?"),
  passwordFlag("7z", "-p"),
  passwordFlag("ldap[a-z]{3,8}", "-w ?"),
  passwordFlag("smbclient", "-U ?", "[^\\s%\"']{1,80}%"),
]

function passwordFlag(command: string, name: string, user = "", minLength = 4): (typeof PASSWORD_FLAGS)[number] {
  return {
    command,
    flag: new RegExp(`\\s${name}\\\\{0,8}["']?${user}([^\\s"'\`\\\\]{${minLength},200})`, "y"),
  }
}

const COMMAND = new RegExp(
  `(?<![\\w.-])(?:${[...new Set(PASSWORD_FLAGS.map(({ command }) => command))].join("|")}) `,
  "i",
)
const FLAG_PATTERNS = PASSWORD_FLAGS.map((rule) => ({
  ...rule,
  command: new RegExp(`^${rule.command} $`, "i"),
}))

/** The maximum distance between the beginning of a command and its flag. */
const MAX_COMMAND_LENGTH = 160

/** Finds the passwords of the flags at these positions, which come from `hintsOf`. */
export function findCommands(text: string, flags: readonly number[], spans: Span[]): void {
  for (const at of flags) {
    const piped = text.startsWith("sudo -S", at) ? findPipedPassword(text, at) : undefined
    if (piped) spans.push(piped)
    if (!VALUE_FOLLOWS.test(text.slice(at + 2, at + 10))) continue
    const name = COMMAND.exec(text.slice(commandStart(text, at), at + 1))?.[0]
    if (name === undefined) continue
    for (const { command, flag, cookie } of FLAG_PATTERNS) {
      if (!command.test(name)) continue
      flag.lastIndex = at
      const password = flag.exec(text)?.[1]
      if (password === undefined || isExamplePassword(password) || (cookie && !looksRandom(password, 16))) continue
      spans.push({
        start: flag.lastIndex - password.length,
        end: flag.lastIndex,
        rule: cookie ? "cookie" : "password",
      })
    }
  }
}

/** Matches if a value follows, but not if another flag follows. */
const VALUE_FOLLOWS = /^\S\S|^\S \\{0,8}["']?[^\s-]/

/** The earliest position at which the command around `at` can begin. */
function commandStart(text: string, at: number): number {
  let start = at
  while (start > 0 && start > at - MAX_COMMAND_LENGTH && !isCommandEnd[text.charCodeAt(start - 1)]) start--
  return start
}

const isCommandEnd = new Uint8Array(1 << 16)
for (const character of "\n;|&") isCommandEnd[character.charCodeAt(0)] = 1

const PIPED_PASSWORD =
  /(?:echo|printf)(?: -n)? \\*["']?(?:[\w.-]{1,40}:)?([^\s"'`\\$|:]{4,100})(?:\\n)?\\*["']?[ \t]{0,3}\|[ \t]{0,3}$/

/** Finds the password that is piped into the command that begins at `at`. */
export function findPipedPassword(text: string, at: number): Span | undefined {
  const from = Math.max(0, at - 200)
  const match = PIPED_PASSWORD.exec(text.slice(from, at))
  if (!match || isExamplePassword(match[1]!)) return undefined
  const start = from + match.index + match[0].lastIndexOf(match[1]!)
  return { start, end: start + match[1]!.length, rule: "password" }
}

function isExamplePassword(password: string): boolean {
  return (
    /^(?:pass(?:word|wd)?|pwd|secret|token|test|admin|root|user|api_?key|\$.*|x-oauth-basic|\d{1,5}(?::\d+)?)$/i.test(
      password,
    ) || isPlaceholder(password)
  )
}
