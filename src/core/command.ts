/** One program of a command line, with its arguments. */
export type CommandPart = {
  /** The program and the one or two words that select what it does: `npm run test`. */
  kind: string
  /** The other arguments, without flags, redirections and bare numbers. */
  args: string[]
}

/** Only the beginning of a command is examined, which is enough to recognise it. */
const MAX_EXAMINED_CHARS = 2000
/** Commands that only look at something, handle files or set up the shell. */
const IGNORED_COMMANDS =
  /^(?:(?:ls|cat|head|tail|grep|rg|ag|find|fd|which|pwd|echo|printf|sed|awk|wc|test|\[|\[\[|cd|stat|file|tree|less|diff|jq|env|type|command|true|sleep|mkdir|rm|cp|mv|touch|chmod|sort|uniq|xxd|od|ps|kill|export|source)(?: .*)?|gh (?:api|pr (?:diff|view|list|checks|status)|issue (?:view|list)|run (?:view|list|watch))|git (?:log|show|diff|status|branch|blame|rev-parse|ls-files|remote|config|check-ignore|merge-base|ls-tree|for-each-ref|reflog))$/
/** Words that may precede the program: wrappers such as sudo, their options, and variables. */
const PREFIX_WORDS = /^(?:sudo|time|timeout|npx|bunx|env|nohup|exec|-\w+|\d+[smh]?|\w+=\S*)$/
const HEREDOC = /<<-?\s*['"]?\w/
const QUOTED = /'[^']*'|"(?:[^"\\]|\\.)*"/g

/**
 * Returns the programs that a command line runs, except the IGNORED_COMMANDS, and whether a pipe hides the exit status. The only
 * program of `cd api && npm run test -- -u 2>&1 | tail` is `npm run test`, and it is piped.
 */
export function commandParts(command: string): { parts: CommandPart[]; piped: boolean } {
  const examined = command.slice(0, MAX_EXAMINED_CHARS)
  const heredocStart = HEREDOC.exec(examined)?.index ?? examined.length
  const quotedTexts: string[] = []
  const unquoted = examined
    .slice(0, heredocStart)
    .replaceAll(QUOTED, (text) => `"${quotedTexts.push(text.slice(1, -1)) - 1}"`)
    .replaceAll("||", "&&")
  const unquote = (word: string) => word.replaceAll(/"(\d+)"/g, (_, i: string) => quotedTexts[Number(i)] ?? "")
  const segments = unquoted.split(/&&|;|\n/)
  const parts = segments.flatMap((segment) => partOf(segment.split("|", 1)[0]!, unquote) ?? [])
  if (heredocStart < examined.length) parts.at(-1)?.args.push(examined.slice(heredocStart))
  const piped = segments.some((segment) => segment.includes("|")) && !/pipefail/.test(command)
  return { parts: parts.filter(({ kind }) => !IGNORED_COMMANDS.test(kind)), piped }
}

/** Like `commandParts`, but returns only the kinds of the programs, each once. */
export function commandKinds(command: string): { kinds: string[]; piped: boolean } {
  const { parts, piped } = commandParts(command)
  return { kinds: [...new Set(parts.map(({ kind }) => kind))], piped }
}

function partOf(segment: string, unquote: (word: string) => string): CommandPart | undefined {
  const words = segment.trim().split(/\s+/)
  const start = words.findIndex((word) => !PREFIX_WORDS.test(word))
  if (start === -1) return undefined
  const program = words[start]!.split("/").at(-1)!
  if (!/^[\w.[-]+$/.test(program)) return undefined
  const rest = words.slice(start + 1)
  const [first, second] = rest
  const args = (from: number) => argsIn(rest.slice(from)).map(unquote)
  if (first === undefined || !/^[a-z][\w:-]*$/.test(first)) return { kind: program, args: args(0) }
  const hasSubcommand =
    /^(?:run|exec|x|tool|pr|issue)$/.test(first) && second !== undefined && /^[\w:.-]+$/.test(second)
  return hasSubcommand
    ? { kind: `${program} ${first} ${second}`, args: args(2) }
    : { kind: `${program} ${first}`, args: args(1) }
}

/**
 * Returns the arguments without flags, redirections and bare numbers. Also omits a commit message, because it says nothing about
 * what was run.
 */
function argsIn(words: string[]): string[] {
  return words.filter(
    (word, i) => !/^(?:-|\d*[<>&]|\d+$)/.test(word) && !/^(?:-\w*m|--message|\d*>>?)$/.test(words[i - 1] ?? ""),
  )
}
