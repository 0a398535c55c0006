import { describeToolCall } from "../../core/call-words.ts"
import type { Hunk, Part, Role } from "../../core/conversation.ts"
import { formatCount, messageText } from "../../core/format.ts"
import { parseObject } from "../../core/record.ts"
import { estimateTokens } from "../../core/tokens.ts"
import { hasFailed, type Outcome, outcomeWords, type ToolResult, withoutRoot } from "../fold.ts"
import { messageSpeaker, type Speaker } from "../speaker.ts"
import { highlightedHtml, languageOfFile } from "./code-html.ts"
import { countsHtml, diffHtml } from "./diff-html.ts"
import { type Html, html } from "./html.ts"
import { markdownHtml } from "./markdown-html.ts"

/** A message as shown on a page. */
export type PageMessage = {
  number: number
  role: Role
  parts: readonly Part[]
  /** The time, the model and other facts. */
  facts: readonly string[]
}

export type PageOptions = {
  /** The agent's name. */
  agent: string
  /** The folder that is stripped from paths. */
  root: string
  /** The outcome of each call, and the message in which the call was made. */
  outcomes: ReadonlyMap<string, Outcome & { madeIn?: number }>
  /** The inputs of calls that are not on this page, although their results are. */
  calls?: ReadonlyMap<string, string>
  /** The conversation of a subagent that a call started. */
  subagentOf?(callId: string): Html | undefined
  /** The maximum number of characters that are shown of a text. A longer text is cut and ends with `rest`. */
  maxChars: number
  /** Returns a link to the complete part. Without it, nothing is cut. */
  rest?(number: number, part: number): Html
  /** Content next to the head of a message, such as a link to it. */
  headExtra?(number: number): Html
}

/** The CSS class of each kind of speaker. An approved plan looks like a person's message, because it says what they want. */
const SPEAKER_CLASSES: Record<Speaker["kind"], string> = {
  person: "person",
  plan: "person",
  agent: "agent",
  program: "tool",
}

/** Undefined if the message shows nothing itself, such as one that contains only results: these are shown with their calls. */
export function messageHtml(message: PageMessage, options: PageOptions): Html | undefined {
  const shownParts = message.parts.flatMap((part, i) => partHtml(part, i, message, options) ?? [])
  if (shownParts.length === 0) return undefined
  const { name, kind } = messageSpeaker(message, options.agent)
  const isSpoken = message.parts.some(
    (part) => part.type === "text" && part.origin !== "injected" && part.text.trim() !== "",
  )
  const head = html`<header><b>${name}</b> <span class="facts">${message.facts.join(" · ")}</span>${options.headExtra?.(message.number)}</header>`
  return html`<article class="message ${SPEAKER_CLASSES[kind]}${isSpoken ? "" : " quiet"}" id="m${message.number}" tabindex="-1">${head}${shownParts}</article>`
}

function partHtml(part: Part, index: number, message: PageMessage, options: PageOptions): Html | undefined {
  const place = { number: message.number, index }
  switch (part.type) {
    case "text":
      if (part.text.trim() === "") return undefined
      if (part.origin === "injected") return foldedText("injected", part.text, place, options)
      return html`<div class="said">${markdownHtml(cutToLimit(part.text, options, place).text)}${cutToLimit(part.text, options, place).rest}</div>`
    case "thinking":
      return part.text.trim() === "" ? undefined : foldedText("thinking", part.text, place, options)
    case "summary":
      return foldedText("summary of what came before", part.text, place, options)
    case "image":
      return html`<p class="image">${messageText({ parts: [part] }, "stripped")}</p>`
    case "tool_call": {
      const outcome = (part.call_id !== undefined && options.outcomes.get(part.call_id)) || {}
      return callHtml(part.tool, part.text, outcome, part.call_id, place, options)
    }
    case "tool_result": {
      const outcome = part.call_id === undefined ? undefined : options.outcomes.get(part.call_id)
      if (outcome?.madeIn !== undefined && outcome.result === part) return undefined
      const call = (part.call_id !== undefined && options.calls?.get(part.call_id)) || ""
      return callHtml(part.tool ?? "tool", call, { ...outcome, result: part }, part.call_id, place, options)
    }
  }
}

type PartPosition = { number: number; index: number }

function foldedText(name: string, text: string, place: PartPosition, options: PageOptions): Html {
  const cutText = cutToLimit(text, options, place)
  return html`<details class="fold ${name.split(" ")[0]}"><summary><span class="tool">${name}</span> <span class="what">${text.trim().slice(0, 200)}</span> <span class="outcome">${formatCount(estimateTokens(text))} tokens</span></summary><div class="body">${markdownHtml(cutText.text)}${cutText.rest}</div></details>`
}

/** A call's input with more characters, such as a complete file, is not parsed, because that would take long. */
const MAX_INPUT_CHARS = 500_000
const MAX_DIFF_LINES = 80

function callHtml(
  tool: string,
  input: string,
  outcome: Outcome,
  callId: string | undefined,
  place: PartPosition,
  options: PageOptions,
): Html {
  const { what } = input.length > MAX_INPUT_CHARS ? { what: input } : describeToolCall(input)
  const words = withoutRoot(what.slice(0, 2_000), options.root).replaceAll(/\s+/g, " ")
  const isFailure = hasFailed(outcome)
  const hunks = outcome.result?.hunks
  const body = hunks?.length
    ? changesHtml(hunks, words, options, place)
    : html`${inputHtml(input, options, place)}${outcome.result && outputHtml(outcome.result, words, options, place)}`
  const subagent = callId === undefined ? undefined : options.subagentOf?.(callId)
  return html`<details class="fold call${isFailure ? " failed" : ""}${hunks?.length ? " edit" : ""}"${hunks?.length ? html` open` : ""}><summary><span class="tool">${tool}</span> <span class="what">${words.slice(0, 300)}</span> <span class="outcome">${isFailure && "✗ "}${hunks?.length && !isFailure ? countsHtml(hunks) : outcomeWords(outcome).join(" · ")}</span></summary><div class="body">${body}</div></details>${subagent}`
}

/** The changes of a call. If it names the only file that it changed, these are not folded again. */
function changesHtml(hunks: Hunk[], words: string, options: PageOptions, place: PartPosition): Html {
  const byPath = [...Map.groupBy(hunks, ({ path }) => withoutRoot(path, options.root))]
  const rest = options.rest && html` · ${options.rest(place.number, place.index)}`
  const diff = (fileHunks: Hunk[]) => diffHtml(fileHunks, options.rest ? MAX_DIFF_LINES : undefined, rest)
  if (byPath.length === 1 && byPath[0]![0] === words) return diff(hunks)
  return html`${byPath.map(([path, fileHunks]) => fileChangesHtml(path, fileHunks, diff(fileHunks)))}`
}

/** The changes to one file, folded to a line with its path and the number of changed lines. */
export function fileChangesHtml(path: string, hunks: Hunk[], diff: Html): Html {
  return html`<details class="fold file" open><summary><span class="what">${path}</span> <span class="outcome">${countsHtml(hunks)}</span></summary>${diff}</details>`
}

/** A call's input, field by field: texts are shown as they are, without JSON escapes. */
function inputHtml(text: string, options: PageOptions, place: PartPosition): Html {
  const input = text.length > MAX_INPUT_CHARS ? undefined : parseObject(text)
  if (!input) return text === "" ? html`` : html`<pre class="input">${cutToLimit(text, options, place).text}</pre>`
  const fields = Object.entries(input).map(([name, value]) => {
    const cutText = cutToLimit(typeof value === "string" ? value : JSON.stringify(value), options, place)
    const language = name === "command" || name === "cmd" ? "bash" : ""
    return html`<dt>${name}</dt><dd><pre class="input">${highlightedHtml(cutText.text, language)}${cutText.rest}</pre></dd>`
  })
  return html`<dl class="fields">${fields}</dl>`
}

function outputHtml(result: ToolResult, words: string, options: PageOptions, place: PartPosition): Html {
  const cutText = cutToLimit(result.text.trimEnd(), options, place)
  if (cutText.text === "") return html`<p class="none">no output</p>`
  const language = /^\S+$/.test(words) ? languageOfFile(words) : ""
  const text = language === "" || result.is_error ? terminalHtml(cutText.text) : highlightedHtml(cutText.text, language)
  return html`<pre class="output">${text}${cutText.rest}</pre>`
}

function cutToLimit(
  text: string,
  { maxChars, rest }: PageOptions,
  { number, index }: PartPosition,
): { text: string; rest?: Html } {
  if (text.length <= maxChars || rest === undefined) return { text }
  const end = text.lastIndexOf("\n", maxChars)
  return { text: text.slice(0, end > maxChars / 2 ? end : maxChars), rest: rest(number, index) }
}

const COLOUR_SEQUENCE = /\x1b\[([\d;:]*)m/g
/** The maximum number of escape sequences that are rendered. A program that draws writes more than anybody reads. */
const MAX_SEQUENCES = 5_000

type TextLook = { color?: number | undefined; bold?: boolean; dim?: boolean; italic?: boolean; underlined?: boolean }

/** A program's output. Colours become classes; all other sequences are removed. */
export function terminalHtml(text: string): Html {
  if (!text.includes("\x1b[")) return html`${text}`
  const pieces: Html[] = []
  let look: TextLook = {}
  let from = 0
  for (const { 0: sequence, 1: codes = "", index } of text.matchAll(COLOUR_SEQUENCE)) {
    if (pieces.length >= MAX_SEQUENCES) break
    if (index > from) pieces.push(styledText(text.slice(from, index), look))
    look = lookAfter(look, codes)
    from = index + sequence.length
  }
  if (from < text.length) pieces.push(styledText(text.slice(from), look))
  return html`${pieces}`
}

function styledText(text: string, look: TextLook): Html {
  const classes = [
    ...(look.color === undefined ? [] : [`ansi-${look.color}`]),
    ...(["bold", "dim", "italic", "underlined"] as const).filter((name) => look[name]),
  ]
  return classes.length === 0 ? html`${text}` : html`<span class="${classes.join(" ")}">${text}</span>`
}

function lookAfter(look: TextLook, codes: string): TextLook {
  let newLook = { ...look }
  const numbers = codes.split(/[;:]/).map(Number)
  for (let i = 0; i < numbers.length; i++) {
    const code = numbers[i]!
    if (code === 0) newLook = {}
    else if (code === 1) newLook.bold = true
    else if (code === 2) newLook.dim = true
    else if (code === 3) newLook.italic = true
    else if (code === 4) newLook.underlined = true
    else if (code === 22) Object.assign(newLook, { bold: false, dim: false })
    else if (code === 23) newLook.italic = false
    else if (code === 24) newLook.underlined = false
    else if (code >= 30 && code <= 37) newLook.color = code - 30
    else if (code >= 90 && code <= 97) newLook.color = code - 90 + 8
    else if (code === 39) newLook.color = undefined
    else if (code === 38 || code === 48) {
      // Either an index into the palette, whose first sixteen colours have names, or an RGB colour in three numbers.
      const isNamed = numbers[i + 1] === 5 && numbers[i + 2]! < 16
      if (code === 38) newLook.color = isNamed ? numbers[i + 2] : undefined
      i += numbers[i + 1] === 2 ? 4 : 2
    }
  }
  return newLook
}
