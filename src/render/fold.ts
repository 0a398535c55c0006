import { describeToolCall } from "../core/call-words.ts"
import type { Effect, Part } from "../core/conversation.ts"
import { formatCount } from "../core/format.ts"
import { estimateTokens } from "../core/tokens.ts"
import { changedLines } from "./patch.ts"
import type { Screen } from "./screen.ts"
import { clip, paint, safeLine, widthOf } from "./terminal.ts"

export type ToolResult = Part & { type: "tool_result" }
export type Outcome = { result?: ToolResult; exit_status?: number }

/** A call and its outcome on one line: `▸ Bash go test ./… ✗ exit 1 · 22 lines`. */
export function foldCall(tool: string, input: string, outcome: Outcome, fold: FoldOptions): string {
  const { what } = input.length > MAX_CHARS ? { what: input } : describeToolCall(input)
  const words = withoutRoot(safeLine(what.slice(0, 2_000)), fold.root)
  return foldLine(
    `${safeLine(tool)} ${words}`,
    outcomeWords(outcome).join(` ${fold.screen.glyphs.dot} `),
    hasFailed(outcome),
    fold,
  )
}

/** A call's input with more characters, such as a complete file, is not parsed, because that would take long. */
const MAX_CHARS = 500_000

/** One line for text that is not part of the dialogue: thinking, injected text, a summary, an image. */
export function foldText(name: string, text: string, fold: FoldOptions): string {
  const size = text === "" ? "" : `${formatCount(estimateTokens(text))} tokens`
  return foldLine(`${name} ${safeLine(text.slice(0, 500))}`, size, false, fold)
}

export type FoldOptions = {
  screen: Screen
  /** The folder that is stripped from paths. */
  root: string
  /** The number of the message, which is shown so that people can find the complete message. */
  number: number
}

function foldLine(what: string, outcome: string, isFailure: boolean, { screen, number }: FoldOptions): string {
  const { glyphs } = screen
  const mark = isFailure ? `${glyphs.failed} ` : outcome === "" ? "" : `${glyphs.dot} `
  const end = ` ${mark}${outcome}`.trimEnd()
  const label = `  #${number}`
  const room = Math.max(8, screen.columns - widthOf(end) - widthOf(label) - 2)
  const line = safeLine(what)
  const shown =
    widthOf(line) <= room ? line : clip(line, room - widthOf(glyphs.ellipsis) + 1).slice(0, -1) + glyphs.ellipsis
  const [, first = "", rest = ""] = /^(\S*)(.*)$/s.exec(shown)!
  return [
    paint(screen, "dim", `${glyphs.folded} `),
    paint(screen, "cyan", first),
    rest,
    isFailure ? paint(screen, "red", end) : paint(screen, "dim", end),
    paint(screen, "dim", label),
  ].join("")
}

/** Removes the root folder from paths, and `cd` to it from commands. */
export function withoutRoot(text: string, root: string): string {
  return root === "" ? text : text.replaceAll(`cd ${root} && `, "").replaceAll(`${root}/`, "")
}

export function hasFailed({ result, exit_status }: Outcome): boolean {
  return result?.is_error === true || (exit_status !== undefined && exit_status !== 0)
}

/** A call's outcome in a few words: `exit 1`, `22 lines`, `+3 -1`. */
export function outcomeWords({ result, exit_status }: Outcome): string[] {
  if (result === undefined) return []
  const words: string[] = []
  if (exit_status !== undefined && exit_status !== 0) words.push(`exit ${exit_status}`)
  else if (result.is_error) words.push("failed")
  if (result.hunks?.length) {
    const { added, removed } = changedLines(result.hunks)
    return [...words, `+${added} -${removed}`]
  }
  const lineCount = result.text.trim() === "" ? 0 : result.text.trimEnd().split("\n").length
  return [...words, lineCount === 0 ? "no output" : lineCount === 1 ? "1 line" : `${lineCount} lines`]
}

type CallMessage = { number: number; parts: readonly Part[]; effects?: readonly Effect[] }

/** The outcome of each call, and the message in which the call was made. */
export function outcomesOf(messages: readonly CallMessage[]): Map<string, Outcome & { madeIn?: number }> {
  const outcomes = new Map<string, Outcome & { madeIn?: number }>()
  const outcomeOf = (id: string) => {
    const outcome = outcomes.get(id) ?? {}
    outcomes.set(id, outcome)
    return outcome
  }
  for (const { number, parts, effects } of messages) {
    for (const part of parts) {
      if (part.type === "tool_call" && part.call_id !== undefined) outcomeOf(part.call_id).madeIn = number
      if (part.type === "tool_result" && part.call_id !== undefined) outcomeOf(part.call_id).result = part
    }
    for (const effect of effects ?? [])
      if (effect.type === "command" && effect.call_id !== undefined && effect.exit_status !== undefined)
        outcomeOf(effect.call_id).exit_status = effect.exit_status
  }
  return outcomes
}
