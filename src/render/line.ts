import { describeToolCall } from "../core/call-words.ts"
import type { Message, Part } from "../core/conversation.ts"
import { formatCount, messageText } from "../core/format.ts"
import { tokensForChars } from "../core/tokens.ts"
import { limitOf, type TextKind, tokensPerMsgFor } from "./limits.ts"
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
/** `before` and `after` surround the text; `bare` replaces all of it if there is no room. */
type Piece = { before: string; text: string; more: boolean; after: string; bare: string; shown: TextKind }

/**
 * One line per message, as in `cat -n`: number, tab, `[role]`, time, the complete size in tokens, and the text. `most` is the
 * longest text that may be needed of one part. Hunks are not shown: an edit says how many lines it changed.
 */
export function linesOf(entries: LineEntry[], most: number): Line[] {
  const calls: Calls = new Map()
  const width = entries.reduce((widest, { label }) => Math.max(widest, label.length), 0)
  let day = ""
  return entries.map(({ message, label, roots }, i) => {
    learn(calls, message, i)
    const when = message.at === undefined ? undefined : timeOf(message.at)
    const date = when && when.day !== day ? `${when.day} ` : ""
    if (when) day = when.day
    const state = message.superseded ? "superseded" : message.abandoned ? "abandoned" : message.copied ? "copied" : ""
    const head = [
      `${label.padStart(width)}\t[${message.role}${state && `, ${state}`}]`,
      ...(when ? [`${date}${when.time}`] : []),
      `~${formatCount(sizeOf(message))} |`,
    ].join(" ")
    const cut = (text: string) => oneLine(text, most, roots)
    return { head, pieces: message.parts.flatMap((part) => piecesOf(part, message.role, calls, i, cut)) }
  })
}

/** The line with each of its texts cut to what `tokensPerMsg` allows. */
export function lineText({ head, pieces }: Line, tokensPerMsg: number): string {
  const texts = pieces.map((piece) => pieceText(piece, limitOf(piece.shown, tokensPerMsg)))
  return [head, ...texts.filter((text) => text !== "")].join(" ")
}

/** The tokens per message from which nothing is cut. */
export function uncutLimit(lines: Line[]): number {
  return lines.reduce(
    (most, { pieces }) =>
      pieces.reduce((so, piece) => Math.max(so, tokensPerMsgFor(piece.shown, piece.text.length)), most),
    0,
  )
}

function pieceText(piece: Piece, limit: number): string {
  if (piece.text.length <= limit && !piece.more) return `${piece.before}${piece.text}${piece.after}`
  // A path is cut at its beginning, because its end says which file it is.
  const kept = isPath(piece.text)
    ? `…${piece.text.slice(piece.text.length - limit).replace(/^[\udc00-\udfff]/, "")}`
    : `${piece.text
        .slice(0, limit)
        .replace(/[\ud800-\udbff]$/, "")
        .trimEnd()}…`
  return kept === "…" ? piece.bare : `${piece.before}${kept}${piece.after}`
}

function isPath(text: string): boolean {
  return text.length < 500 && /^[^\s"'`|<>]*\/[^\s"'`|<>/]+$/.test(text)
}

type Cut = (text: string) => { text: string; more: boolean }

function piecesOf(part: Part, role: Message["role"], calls: Calls, at: number, cut: Cut): Piece[] {
  switch (part.type) {
    case "text":
      if (part.origin === "injected") return [bare("[injected]")]
      if (role === "assistant") return [piece("answer", "", cut(part.text), "", "…")]
      return role === "system"
        ? [piece("system", "", cut(part.text), "", "…")]
        : [piece("user", '"', cut(part.text), '"', "…")]
    case "thinking":
      return [piece("thinking", "[thinking] ", cut(part.text), "", "[thinking]")]
    case "summary":
      return [piece("system", "[summary] ", cut(part.text), "", "[summary]")]
    case "image":
      return [bare(messageText({ parts: [part] }, "stripped"))]
    case "tool_call": {
      const words = describeToolCall(part.text)
      const tool = safeLine(part.tool)
      const call = piece("call", `[${tool}: `, cut(words.what), "]", `[${tool}]`)
      if (words.old === undefined || words.new === undefined) return [call]
      return [
        call,
        piece("edited_text", 'old:"', cut(words.old), '"', ""),
        piece("edited_text", 'new:"', cut(words.new), '"', ""),
      ]
    }
    case "tool_result":
      return resultPieces(part, calls, at, cut)
  }
}

/** The result of a call. If the call is not on this line or the line above, it is named again. */
function resultPieces(part: Part & { type: "tool_result" }, calls: Calls, at: number, cut: Cut): Piece[] {
  const call = part.call_id === undefined ? undefined : calls.get(part.call_id)
  const tool = safeLine(part.tool ?? call?.tool ?? "tool")
  const kind = outputKind(tool)
  const end = endOf(part, call?.exit_status, kind === undefined)
  const after = end === "" ? "]" : ` → ${end}]`
  const again = call && call.at !== at - 1 && call.at !== at
  const head = again
    ? piece("call", `[${tool}: `, cut(describeToolCall(call.text).what), after, `[${tool}${after}`)
    : bare(`[${tool}${after}`)
  const shown = kind ?? (part.is_error ? "command_output" : undefined)
  return shown === undefined || part.text === "" ? [head] : [head, piece(shown, "", cut(part.text), "", "")]
}

function endOf(part: Part & { type: "tool_result" }, exitStatus: number | undefined, sizeOnly: boolean): string {
  const ends: string[] = []
  if (exitStatus !== undefined && exitStatus !== 0) ends.push(`exit ${exitStatus}`)
  else if (part.is_error) ends.push("failed")
  if (part.hunks && part.hunks.length > 0) {
    const { added, removed } = changedLines(part.hunks)
    return [...ends, `+${added} -${removed}`].join(", ")
  }
  const lines = part.text === "" ? 0 : part.text.replace(/\n+$/, "").split("\n").length
  if (lines === 0) ends.push("empty")
  else if (lines > 1) ends.push(`${lines} lines`)
  else if (sizeOnly && ends.length === 0) ends.push("ok")
  return ends.join(", ")
}

function piece(
  shown: TextKind,
  before: string,
  content: { text: string; more: boolean },
  after: string,
  none: string,
): Piece {
  if (content.text === "") return bare(none === "…" ? "" : none)
  return { before, ...content, after, bare: none, shown }
}

function bare(text: string): Piece {
  return { before: "", text: "", more: true, after: "", bare: text, shown: "system" }
}

/** Enough of the text for any cut, on one line, without the given folders. */
function oneLine(text: string, most: number, roots: string[]): { text: string; more: boolean } {
  const enough = 2 * most + 1000
  const near = roots.reduce(
    (short, root) => short.replaceAll(`cd ${root} && `, "").replaceAll(`${root}/`, ""),
    text.slice(0, enough),
  )
  return { text: safeLine(near), more: text.length > enough }
}

/** The calls so far, by id. An id may be used again. */
type Calls = Map<string, { at: number; tool: string; text: string; exit_status?: number }>

function learn(calls: Calls, message: LineEntry["message"], at: number): void {
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
  const two = (n: number) => String(n).padStart(2, "0")
  return {
    day: `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`,
    time: `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`,
  }
}

/** How much of a tool's output to show. Undefined if its size says enough. */
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
