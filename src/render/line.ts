import { describeToolCall } from "../core/call-words.ts"
import type { Message, Part } from "../core/conversation.ts"
import { formatCount, messageText } from "../core/format.ts"
import { charactersWithin, tokensForChars } from "../core/tokens.ts"
import { limitOf, type TextKind } from "./limits.ts"
import { changedLines } from "./patch.ts"
import { safeLine } from "./terminal.ts"

/** A message that becomes a line, with its label. */
export type LineEntry = {
  message: Pick<Message, "role" | "at" | "parts" | "effects"> & {
    abandoned?: boolean
    superseded?: boolean
    copied?: boolean
  }
  /** The message's number, or a ref. */
  label: string
  /** Folders that are stripped from paths. */
  roots: string[]
}

/** A line that can be cut to any length. */
export type Line = { head: string; pieces: Piece[] }
/** `before` and `after` surround the text. `fallback` replaces all three if there is no room for any text. */
type Piece = { before: string; text: string; isCut: boolean; after: string; fallback: string; kind: TextKind }

/**
 * One line per message, as in `cat -n`: number, tab, `[role]`, time, the complete size in tokens, and the text. `maxChars`
 * is the largest number of characters that a line may show of one part. Hunks are not shown: an edit says how many lines it
 * changed.
 */
export function linesOf(entries: LineEntry[], maxChars: number): Line[] {
  const calls: Calls = new Map()
  const width = entries.reduce((widest, { label }) => Math.max(widest, label.length), 0)
  let day = ""
  return entries.map(({ message, label, roots }, i) => {
    recordCalls(calls, message, i)
    const when = message.at === undefined ? undefined : timeOf(message.at)
    const date = when && when.day !== day ? `${when.day} ` : ""
    if (when) day = when.day
    const state = message.superseded ? "superseded" : message.abandoned ? "abandoned" : message.copied ? "copied" : ""
    const head = [
      `${label.padStart(width)}\t[${message.role}${state && `, ${state}`}]`,
      ...(when ? [`${date}${when.time}`] : []),
      `~${formatCount(sizeOf(message))} |`,
    ].join(" ")
    const toLine = (text: string) => oneLine(text, maxChars, roots)
    return { head, pieces: message.parts.flatMap((part) => piecesOf(part, message.role, calls, i, toLine)) }
  })
}

/** The line with each of its texts cut to what `tokensPerMsg` allows. */
export function lineText({ head, pieces }: Line, tokensPerMsg: number): string {
  const texts = pieces.map((piece) => pieceText(piece, limitOf(piece.kind, tokensPerMsg)))
  return [head, ...texts.filter((text) => text !== "")].join(" ")
}

/** Lines that can be cut to the length that an answer needs. Text that cannot fit into the answer is left out from the start. */
export function cuttableLines(entries: LineEntry[], maxTokens: number | undefined, tokensPerMsg: number): Line[] {
  return linesOf(entries, maxTokens === undefined ? limitOf("user", tokensPerMsg) : charactersWithin(maxTokens))
}

function pieceText(piece: Piece, limit: number): string {
  if (piece.text.length <= limit && !piece.isCut) return `${piece.before}${piece.text}${piece.after}`
  // A path is cut at its beginning, because its end says which file it is.
  const cutText = isPath(piece.text)
    ? `…${piece.text.slice(piece.text.length - limit).replace(/^[\udc00-\udfff]/, "")}`
    : `${piece.text
        .slice(0, limit)
        .replace(/[\ud800-\udbff]$/, "")
        .trimEnd()}…`
  return cutText === "…" ? piece.fallback : `${piece.before}${cutText}${piece.after}`
}

function isPath(text: string): boolean {
  return text.length < 500 && /^[^\s"'`|<>]*\/[^\s"'`|<>/]+$/.test(text)
}

type ToLine = (text: string) => { text: string; isCut: boolean }

function piecesOf(part: Part, role: Message["role"], calls: Calls, at: number, toLine: ToLine): Piece[] {
  switch (part.type) {
    case "text":
      if (part.origin === "injected") return [labelPiece("[injected]")]
      if (role === "assistant") return [piece("answer", "", toLine(part.text), "", "…")]
      return role === "system"
        ? [piece("system", "", toLine(part.text), "", "…")]
        : [piece("user", '"', toLine(part.text), '"', "…")]
    case "thinking":
      return [piece("thinking", "[thinking] ", toLine(part.text), "", "[thinking]")]
    case "summary":
      return [piece("system", "[summary] ", toLine(part.text), "", "[summary]")]
    case "image":
      return [labelPiece(messageText({ parts: [part] }, "stripped"))]
    case "tool_call": {
      const words = describeToolCall(part.text)
      const tool = safeLine(part.tool)
      const call = piece("call", `[${tool}: `, toLine(words.what), "]", `[${tool}]`)
      if (words.old === undefined || words.new === undefined) return [call]
      return [
        call,
        piece("edited_text", 'old:"', toLine(words.old), '"', ""),
        piece("edited_text", 'new:"', toLine(words.new), '"', ""),
      ]
    }
    case "tool_result":
      return resultPieces(part, calls, at, toLine)
  }
}

/** The result of a call. If the call is neither on this line nor on the line above, it is repeated. */
function resultPieces(part: Part & { type: "tool_result" }, calls: Calls, at: number, toLine: ToLine): Piece[] {
  const call = part.call_id === undefined ? undefined : calls.get(part.call_id)
  const tool = safeLine(part.tool ?? call?.tool ?? "tool")
  const kind = outputKind(tool)
  const end = outcomeText(part, call?.exit_status, kind === undefined)
  const after = end === "" ? "]" : ` → ${end}]`
  const isFarFromCall = call && call.at !== at - 1 && call.at !== at
  const head = isFarFromCall
    ? piece("call", `[${tool}: `, toLine(describeToolCall(call.text).what), after, `[${tool}${after}`)
    : labelPiece(`[${tool}${after}`)
  const textKind = kind ?? (part.is_error ? "command_output" : undefined)
  return textKind === undefined || part.text === "" ? [head] : [head, piece(textKind, "", toLine(part.text), "", "")]
}

function outcomeText(
  part: Part & { type: "tool_result" },
  exitStatus: number | undefined,
  showsSizeOnly: boolean,
): string {
  const words: string[] = []
  if (exitStatus !== undefined && exitStatus !== 0) words.push(`exit ${exitStatus}`)
  else if (part.is_error) words.push("failed")
  if (part.hunks && part.hunks.length > 0) {
    const { added, removed } = changedLines(part.hunks)
    return [...words, `+${added} -${removed}`].join(", ")
  }
  const lineCount = part.text === "" ? 0 : part.text.replace(/\n+$/, "").split("\n").length
  if (lineCount === 0) words.push("empty")
  else if (lineCount > 1) words.push(`${lineCount} lines`)
  else if (showsSizeOnly && words.length === 0) words.push("ok")
  return words.join(", ")
}

function piece(
  kind: TextKind,
  before: string,
  content: { text: string; isCut: boolean },
  after: string,
  fallback: string,
): Piece {
  if (content.text === "") return labelPiece(fallback === "…" ? "" : fallback)
  return { before, ...content, after, fallback, kind }
}

function labelPiece(text: string): Piece {
  return { before: "", text: "", isCut: true, after: "", fallback: text, kind: "system" }
}

/** The text on one line, without the root folders. A very long text is cut, but stays longer than any line can show. */
function oneLine(text: string, maxChars: number, roots: string[]): { text: string; isCut: boolean } {
  const maxLength = 2 * maxChars + 1000
  const withoutRoots = roots.reduce(
    (short, root) => short.replaceAll(`cd ${root} && `, "").replaceAll(`${root}/`, ""),
    text.slice(0, maxLength),
  )
  return { text: safeLine(withoutRoots), isCut: text.length > maxLength }
}

/** The calls so far, by id. An id may be used again. */
type Calls = Map<string, { at: number; tool: string; text: string; exit_status?: number }>

function recordCalls(calls: Calls, message: LineEntry["message"], at: number): void {
  for (const part of message.parts)
    if (part.type === "tool_call" && part.call_id !== undefined)
      calls.set(part.call_id, { at, tool: part.tool, text: part.text })
  for (const effect of message.effects ?? []) {
    if (effect.type !== "command" || effect.call_id === undefined || effect.exit_status === undefined) continue
    const call = calls.get(effect.call_id)
    if (call) call.exit_status = effect.exit_status
  }
}

function sizeOf(message: Pick<Message, "parts">): number {
  return tokensForChars(message.parts.reduce((sum, part) => sum + part.text.length, 0))
}

/** The day and time, in local time. */
function timeOf(at: number): { day: string; time: string } {
  const date = new Date(at)
  const padded = (n: number) => String(n).padStart(2, "0")
  return {
    day: `${date.getFullYear()}-${padded(date.getMonth() + 1)}-${padded(date.getDate())}`,
    time: `${padded(date.getHours())}:${padded(date.getMinutes())}:${padded(date.getSeconds())}`,
  }
}

/** The kind of a tool's output, which decides how much of it is shown. Undefined if showing its size is enough. */
function outputKind(tool: string): TextKind | undefined {
  const name = tool.toLowerCase()
  if (/^(bash|shell|local_shell|exec|exec_command|run_shell_command|run_terminal_cmd|bashoutput)$/.test(name))
    return "command_output"
  if (/^(read|read_file|read_many_files|view|view_image|notebookread)$/.test(name)) return undefined
  if (/^(edit|multiedit|write|write_file|apply_patch|replace|str_replace|edit_file|notebookedit|todowrite)$/.test(name))
    return undefined
  if (/^(glob|grep|ls|list|list_dir|list_directory|search_file_content|codebase_search|file_search)$/.test(name))
    return "found_files"
  if (/^(webfetch|websearch|web_fetch|web_search|google_web_search|fetch)$/.test(name)) return "web_output"
  return /^(task|agent|taskoutput|spawn_agent)$/.test(name) ? "task_output" : "other_output"
}
