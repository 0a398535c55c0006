import type { Span } from "./rules.ts"
import { isPlaceholder } from "./values.ts"

// Passwords that commands take as short flags: `curl -u user:password`, `mysql -pPassword`, `sshpass -p password`.

/** Stands before the flag. */
const COMMAND = /curl |sshpass |mysql(?:dump|admin)? |redis-cli |docker login /g
const FLAGS: { command: string; flag: RegExp }[] = [
  { command: "curl", flag: /\s(?:-u|--user|-U|--proxy-user)[ =]?\\*["']?([^\s:"'\\]{1,100}):([^\s"'`\\]{3,200})/ },
  { command: "sshpass", flag: /^sshpass -p ?\\*["']?([^\s"'`\\]{3,200})/ },
  { command: "mysql", flag: /\s-p\\*["']?([^\s"'\\-][^\s"'`\\]{3,200})/ },
  { command: "redis-cli", flag: /\s-a \\*["']?([^\s"'`\\]{4,200})/ },
  { command: "docker", flag: /\s-p \\*["']?([^\s"'`\\]{4,200})/ },
]
const MAX_COMMAND = 256

export function findCommands(text: string, spans: Span[]): void {
  COMMAND.lastIndex = 0
  for (let hit = COMMAND.exec(text); hit; hit = COMMAND.exec(text)) {
    const near = text.slice(hit.index, hit.index + MAX_COMMAND)
    const end = near.search(/[\n;|&]|\\n/)
    const line = end === -1 ? near : near.slice(0, end)
    const rule = FLAGS.find(({ command }) => line.startsWith(command))
    const match = rule?.flag.exec(line)
    const password = match?.[match.length - 1]
    if (!match || !password || isShown(password)) continue
    const stop = hit.index + match.index + match[0].length
    spans.push({ start: stop - password.length, end: stop, rule: "password" })
  }
}

function isShown(password: string): boolean {
  return (
    /^(?:pass(?:word|wd)?|pwd|secret|token|test|admin|root|user|api_?key|\$.*|x-oauth-basic|\d{1,5}(?::\d+)?)$/i.test(
      password,
    ) || isPlaceholder(password)
  )
}
