import { hunksOfDiff, parsePatch, patchIn } from "../agents/kit/effects.ts"

export type ShellEdit = { path: string; added: string[]; removed: string[] }

/** What is longer holds a document, not edits. */
const LONGEST = 400_000
/** Looking for the file takes the square of a line's length. */
const LONGEST_HEAD = 4_000
const HEREDOC = /<<(-?)\s*(?:'([\w.-]{1,60})'|"([\w.-]{1,60})"|\\?([\w.-]{1,60}))/g

/**
 * What a command line writes into files, as far as its own text says so: here-documents that go to a file, patches, lines
 * that sed puts in and echo appends. What a program makes of a file (a formatter, a script) is not in its text. Pure.
 */
export function shellEdits(command: string): ShellEdit[] {
  if (command.length > LONGEST) return []
  const patch = patchIn(command)
  if (patch !== undefined) return byFile(parsePatch(patch).hunks)
  const edits: ShellEdit[] = []
  let rest = command
  for (const { head, body } of hereDocuments(command)) {
    rest = rest.replace(body, "")
    edits.push(...writtenBy(head, body))
  }
  return [...edits, ...partsOf(rest).flatMap((part) => [...putIn(part), ...appended(part)])]
}

/** A `;` that a quotation mark comes after may be inside the quotation. */
function partsOf(command: string): string[] {
  const quoted = Math.max(command.lastIndexOf("'"), command.lastIndexOf('"')) + 1
  return `${command.slice(0, quoted)}${command.slice(quoted).replaceAll(";", "\n")}`.split(/\n|&&/)
}

type HereDocument = { head: string; body: string }

/** Each with the line that it stands behind. */
function hereDocuments(command: string): HereDocument[] {
  const found: HereDocument[] = []
  let after = 0
  for (const match of command.matchAll(HEREDOC)) {
    if (match.index < after) continue // inside another one
    const word = match[2] ?? match[3] ?? match[4]!
    const start = command.indexOf("\n", match.index)
    if (start === -1) break
    const head = command.slice(command.lastIndexOf("\n", match.index) + 1, start)
    const lines = command.slice(start + 1).split("\n")
    const end = lines.findIndex((line) => (match[1] === "-" ? line.trimStart() : line) === word)
    const body = lines.slice(0, end === -1 ? lines.length : end).join("\n")
    after = start + 1 + body.length
    found.push({ head, body })
  }
  return found
}

const WORD = `(?:'([^'\\n]{1,400})'|"([^"\\n]{1,400})"|([^\\s'"<>|;&]{1,400}))`
const CAT = new RegExp(`\\bcat\\b[^|;&]*?>>?\\s*${WORD}`)
const TEE = new RegExp(`\\btee\\s+(?:-a\\s+)?${WORD}`)

function writtenBy(head: string, body: string): ShellEdit[] {
  if (head.length > LONGEST_HEAD) return []
  if (/\b(?:git\s+apply|patch)\b/.test(head)) return byFile(hunksOfDiff(body))
  const match = CAT.exec(head) ?? TEE.exec(head)
  const path = match && wordOf(match)
  return path ? [{ path, added: body.split("\n"), removed: [] }] : []
}

const SED = new RegExp(`\\bsed\\s+(?:-[A-Za-z]+\\s+)*-i\\S*\\s+(?:''\\s+|-e\\s+)*(?:'([^']*)'|"([^"]*)")\\s+${WORD}`)

/** `a`, `i` and `c` of sed name whole lines; what `s` makes of one is not told. */
function putIn(part: string): ShellEdit[] {
  const match = SED.exec(part)
  if (!match) return []
  const script = match[1] ?? match[2] ?? ""
  const path = match[3] ?? match[4] ?? match[5]
  const text = /^(?:\d+|\$|\/(?:[^/\\]|\\.)*\/)(?:,(?:\d+|\$|\/(?:[^/\\]|\\.)*\/))?\s*[aic]\\?\s*(.+)$/s.exec(
    script,
  )?.[1]
  return path === undefined || text === undefined
    ? []
    : [{ path, added: text.replaceAll("\\t", "\t").split(/\\n|\\?\n/), removed: [] }]
}

const APPENDED = new RegExp(`\\b(?:echo|printf)\\s+(?:-[ne]+\\s+)?(?:'([^']*)'|"([^"]*)")\\s*>>?\\s*${WORD}`)

function appended(part: string): ShellEdit[] {
  const match = APPENDED.exec(part)
  const path = match?.[3] ?? match?.[4] ?? match?.[5]
  if (!match || path === undefined || path.startsWith("/dev/")) return []
  return [{ path, added: (match[1] ?? match[2] ?? "").split(/\\n|\n/), removed: [] }]
}

function wordOf(match: RegExpExecArray): string | undefined {
  const path = match[1] ?? match[2] ?? match[3]
  return path?.startsWith("/dev/") ? undefined : path
}

function byFile(hunks: { path: string; lines: string[] }[]): ShellEdit[] {
  return hunks.map(({ path, lines }) => ({
    path,
    added: lines.filter((line) => line.startsWith("+")).map((line) => line.slice(1)),
    removed: lines.filter((line) => line.startsWith("-")).map((line) => line.slice(1)),
  }))
}
