import type { Effect, Hunk, Part, Role } from "../core/conversation.ts"
import { messageText } from "../core/format.ts"
import { parseObject } from "../core/record.ts"
import { type FoldOptions, foldCall, foldText, type Outcome, outcomesOf, type ToolResult } from "./fold.ts"
import { markdownLines, plainLines } from "./markdown-lines.ts"
import { narrowScreen, type Screen, styleText } from "./screen.ts"
import { isFromPerson, messageSpeaker, type Speaker } from "./speaker.ts"
import { clip, markWords, paint, type Style, safeLine, widthOf, wrapAfter } from "./terminal.ts"

/** A message as shown on a screen. */
export type ReadMessage = {
  number: number
  role: Role
  parts: readonly Part[]
  effects?: readonly Effect[]
  /** The time (`2026-11-03 09:12`) and other facts. */
  facts: readonly string[]
}

export type ReadOptions = {
  screen: Screen
  /** The agent's name. */
  agent: string
  /** The folder that is stripped from paths. */
  root: string
  /** Returns true for parts that are shown completely. Other calls, outputs and thinking are folded to one line. */
  unfolds(part: Part): boolean
  /** The inputs of calls that are not among the messages, by id. They are shown with the results. */
  calls?: ReadonlyMap<string, string>
  /** Matches the words to highlight. */
  words?: RegExp
}

/** How many lines of a folded change are shown. */
const MAX_DIFF_LINES = 24

/**
 * The lines of each message, in order, generated lazily. A call is on one line with its outcome, so a message that contains
 * only results of calls shown here has no lines. `messages` must be all messages that are shown.
 */
export function* readMessages(messages: readonly ReadMessage[], options: ReadOptions): Generator<string[]> {
  const outcomes = outcomesOf(messages)
  let isFolded = false
  for (const message of messages) {
    const screen = isFromPerson(message) ? narrowScreen(options.screen, 2) : options.screen
    const fold: FoldOptions = { screen, root: options.root, number: message.number }
    const shownParts = message.parts
      .flatMap((part) => partLines(part, outcomes, fold, options))
      .map(wordMarker(options))
    if (shownParts.length === 0) continue
    const isSpoken = shownParts.some(({ type }) => type === "spoken")
    const lines = isSpoken ? [headLine(message, options)] : []
    let previousType: ShownPart["type"] | undefined
    for (const part of shownParts) {
      if (previousType !== undefined && (previousType === "spoken" || part.type === "spoken")) lines.push("")
      lines.push(...(isFromPerson(message) ? part.lines.map((line) => withBar(line, options.screen)) : part.lines))
      previousType = part.type
    }
    // One blank line around text; none between consecutive calls.
    yield isSpoken || !isFolded ? ["", ...lines] : lines
    isFolded = previousType === "folded"
  }
}

function wordMarker({ words }: ReadOptions): (part: ShownPart) => ShownPart {
  return (part) => (words ? { ...part, lines: part.lines.map((line) => markWords(line, words)) } : part)
}

type ShownPart = { type: "spoken" | "folded"; lines: string[] }

function partLines(
  part: Part,
  outcomes: ReturnType<typeof outcomesOf>,
  fold: FoldOptions,
  options: ReadOptions,
): ShownPart[] {
  const { screen } = fold
  const isUnfolded = options.unfolds(part)
  const folded = (...lines: string[]): ShownPart[] => [{ type: "folded", lines }]
  switch (part.type) {
    case "text": {
      if (part.text.trim() === "") return []
      if (part.origin !== "injected") return [{ type: "spoken", lines: markdownLines(part.text, screen) }]
      return folded(
        foldText("injected", isUnfolded ? "" : part.text, fold),
        ...(isUnfolded ? indentLines(part.text, screen) : []),
      )
    }
    case "thinking":
    case "summary": {
      if (part.text.trim() === "") return []
      const name = part.type === "summary" ? "summary of what came before:" : part.type
      if (!isUnfolded) return folded(foldText(name, part.text, fold))
      const lines = markdownLines(part.text, narrowScreen(screen, 2)).map((line) => (line === "" ? "" : `  ${line}`))
      return folded(foldText(name, "", fold), ...lines)
    }
    case "image":
      return folded(foldText(messageText({ parts: [part] }, "stripped").replace(/^\[|\]$/g, ""), "", fold))
    case "tool_call": {
      const outcome = (part.call_id !== undefined && outcomes.get(part.call_id)) || {}
      const input = isUnfolded ? callInput(part.text, screen) : []
      const result = outcome.result === undefined ? [] : resultLines(outcome.result, options, screen)
      return folded(foldCall(part.tool, part.text, outcome, fold), ...input, ...result)
    }
    case "tool_result": {
      const outcome: Outcome & { madeIn?: number } = (part.call_id !== undefined && outcomes.get(part.call_id)) || {
        result: part,
      }
      if (outcome.madeIn !== undefined && outcome.result === part) return []
      return folded(
        foldCall(part.tool ?? "tool", callInputOf(part, options), { ...outcome, result: part }, fold),
        ...resultLines(part, options, screen),
      )
    }
  }
}

function callInputOf({ call_id }: ToolResult, { calls }: ReadOptions): string {
  return (call_id !== undefined && calls?.get(call_id)) || ""
}

/** A change is shown as a diff. Other output is shown if it is unfolded; otherwise only its lines with searched words are. */
function resultLines(result: ToolResult, { unfolds, words }: ReadOptions, screen: Screen): string[] {
  const isUnfolded = unfolds(result)
  if (result.hunks?.length)
    return diffLines(result.hunks, screen, isUnfolded ? Number.POSITIVE_INFINITY : MAX_DIFF_LINES)
  if (isUnfolded) return indentLines(result.text.trimEnd(), screen)
  return words ? foundLines(result.text, words, screen) : []
}

/** How many lines with searched words are shown of a folded output. */
const MAX_FOUND_LINES = 3
/** How many characters of an output are searched. An output may be a complete file. */
const MAX_SEARCHED_CHARS = 200_000
const MAX_LINE_LENGTH = 10_000

function foundLines(text: string, words: RegExp, screen: Screen): string[] {
  const matches = text
    .slice(0, MAX_SEARCHED_CHARS)
    .split("\n")
    .map((line) => safeLine(line.slice(0, MAX_LINE_LENGTH)))
    .map((line) => ({ line, at: line.search(words) }))
    .filter(({ at }) => at >= 0)
  const lines = matches.slice(0, MAX_FOUND_LINES).map(({ line, at }) => {
    const from = at < screen.columns / 2 ? 0 : at - 20
    return `  ${clip(`${from > 0 ? screen.glyphs.ellipsis : ""}${line.slice(from)}`, screen.columns - 2)}`
  })
  const hiddenCount = matches.length - lines.length
  return hiddenCount === 0
    ? lines
    : [
        ...lines,
        `  ${paint(screen, "dim", `${screen.glyphs.ellipsis} ${hiddenCount} more such ${hiddenCount === 1 ? "line" : "lines"}`)}`,
      ]
}

function indentLines(text: string, screen: Screen, ...styles: Style[]): string[] {
  return text === ""
    ? []
    : plainLines(text, narrowScreen(screen, 2), ...styles).map((line) => (line === "" ? "" : `  ${line}`))
}

/** A call's input, field by field: texts are shown as they are, without JSON escapes. */
function callInput(text: string, screen: Screen): string[] {
  const input = parseObject(text)
  if (!input) return indentLines(text, screen)
  return Object.entries(input).flatMap(([name, value]) => {
    const valueText = typeof value === "string" ? value : JSON.stringify(value)
    return indentLines(valueText.includes("\n") ? `${name}:\n${valueText}` : `${name}: ${valueText}`, screen)
  })
}

function diffLines(hunks: readonly Hunk[], screen: Screen, maxLines: number): string[] {
  const allLines = hunks.flatMap((hunk) => [
    { text: `@@ -${hunk.old_start},${hunk.old_lines} +${hunk.new_start},${hunk.new_lines} @@`, style: "dim" as const },
    ...hunk.lines.map((text) => ({ text, style: styleOfChange(text) })),
  ])
  const shown = allLines.slice(0, maxLines)
  const lines = shown.flatMap(({ text, style }) => {
    const clean = styleText({ color: false }, text).replaceAll("\t", "    ").replaceAll("\n", " ")
    const pieces = wrapChange(clean, Math.max(8, screen.columns - 2))
    return pieces.map((piece) => `  ${style ? paint(screen, style, piece) : piece}`)
  })
  const hiddenCount = allLines.length - shown.length
  return hiddenCount === 0
    ? lines
    : [
        ...lines,
        `  ${paint(screen, "dim", `${screen.glyphs.ellipsis} ${hiddenCount} more ${hiddenCount === 1 ? "line" : "lines"}`)}`,
      ]
}

/** Wraps a line of a diff. Continuation lines are indented, so that only changed lines begin with a plus or minus sign. */
function wrapChange(line: string, columns: number): string[] {
  const [lead = ""] = /^[+-]? */.exec(line)!
  if (widthOf(line) <= columns) return [line]
  const indentation = lead.length > columns / 2 ? lead.slice(0, 1) : lead || " "
  return wrapAfter(indentation, line.slice(lead === "" ? 0 : indentation.length), columns)
}

function styleOfChange(line: string): Style | undefined {
  return line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : undefined
}

function headLine(message: ReadMessage, { screen, agent }: ReadOptions): string {
  const { name, kind } = messageSpeaker(message, agent)
  const speakerName = clip(safeLine(name), screen.columns)
  const facts = ["", `#${message.number}`, ...message.facts].join(` ${screen.glyphs.dot} `)
  const room = screen.columns - widthOf(speakerName)
  return (
    paint(screen, "bold", paint(screen, STYLES[kind], speakerName)) +
    paint(screen, "dim", room > 1 ? clip(facts, room) : "")
  )
}

const STYLES: Record<Speaker["kind"], Style> = { person: "green", plan: "magenta", agent: "cyan", program: "magenta" }

function withBar(line: string, screen: Screen): string {
  return `${paint(screen, "green", screen.glyphs.bar)} ${line}`.trimEnd()
}
