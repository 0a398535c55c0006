import type { Effect, Message, Origin, Part } from "../../core/conversation.ts"
import { type RawRecord, record, records, string } from "../../core/record.ts"
import { finishedCall, toolCallPart } from "../kit/finished-call.ts"
import { splitInjected } from "../kit/injected.ts"
import { imagePart } from "../kit/kept-text.ts"
import { deedOfRooCode, writtenCalls } from "./tools.ts"

export type Call = { tool: string | undefined; args: RawRecord }
/** `calls`: those of the turns before, by their id; `""` is the last one that was written into a text. */
export type TurnContext = {
  asked: Origin
  workspace: string | undefined
  calls: Map<string, Call>
  count: (type: string) => void
}
type Content = Pick<Message, "role" | "parts" | "effects">

/** A turn as the model was sent it, or as it answered. */
export function contentOfTurn(turn: RawRecord, context: TurnContext): Content {
  const blocks = typeof turn.content === "string" ? [{ type: "text", text: turn.content }] : records(turn.content)
  if (turn.type === "reasoning")
    return { role: "assistant", parts: thoughts(turn.text, ...records(turn.summary).map(({ text }) => text)) }
  if (turn.isSummary === true) return { role: "system", parts: summaryOf(blocks) }
  if (turn.isTruncationMarker === true) return { role: "system", parts: textParts(blocks, "injected") }
  return turn.role === "assistant" ? answerOf(turn, blocks, context) : promptOf(blocks, context)
}

/** Named in what Roo Code adds to a prompt. */
export function modelIn(turn: RawRecord): string | undefined {
  if (string(turn.model)) return string(turn.model)
  const texts = records(turn.content).flatMap(({ text }) => string(text) ?? [])
  return texts.map((text) => /<model>([^<\n]{1,100})<\/model>/.exec(text)?.[1]).find((name) => name !== undefined)
}

function answerOf(turn: RawRecord, blocks: RawRecord[], { calls, count }: TurnContext): Content {
  const parts = thoughts(turn.reasoning_content)
  for (const block of blocks) {
    if (block.type === "text") parts.push(...writtenParts(string(block.text) ?? "", calls))
    else if (block.type === "thinking" || block.type === "reasoning")
      parts.push(...thoughts(block.thinking ?? block.text))
    else if (block.type === "tool_use") {
      const [id, tool, args] = [string(block.id), string(block.name), record(block.input) ?? {}]
      if (id !== undefined) calls.set(id, { tool, args })
      parts.push(callPart(tool, args, id))
    } else if (block.type !== "redacted_thinking" && block.type !== "thoughtSignature")
      count(`content ${String(block.type)}`)
  }
  return { role: "assistant", parts }
}

/** What a task ends with is said to the person. */
function callPart(tool: string | undefined, args: RawRecord, id: string | undefined): Part {
  const result = tool === "attempt_completion" ? string(args.result) : undefined
  return result === undefined ? toolCallPart(tool, args, id) : { type: "text", text: result, origin: "agent" }
}

function thoughts(...texts: unknown[]): Part[] {
  return texts.flatMap((text): Part[] =>
    string(text) ? [{ type: "thinking", text: string(text)!, origin: "agent" }] : [],
  )
}

/** Text with the calls that are written into it. */
function writtenParts(text: string, calls: Map<string, Call>): Part[] {
  const parts: Part[] = []
  let from = 0
  const say = (piece: string) => {
    if (piece.trim() !== "") parts.push({ type: "text", text: piece.trim(), origin: "agent" })
  }
  for (const { tool, args, from: begin, to } of writtenCalls(text)) {
    say(text.slice(from, begin))
    parts.push(callPart(tool, args, undefined))
    calls.set("", { tool, args })
    from = to
  }
  say(text.slice(from))
  return parts
}

const ADDED = ["environment_details"]
const SAID = /^<(task|feedback|user_message|answer)>\n?([\s\S]*?)\n?<\/\1>$/

/** The person's words, what tools said, and what Roo Code adds. */
function promptOf(blocks: RawRecord[], context: TurnContext): Content {
  const parts: Part[] = []
  const effects: Effect[] = []
  let writtenResult = false
  for (const block of blocks) {
    const text = string(block.text) ?? ""
    if (block.type === "tool_result") {
      const id = string(block.tool_use_id)
      add(resultOf(context.calls.get(id ?? ""), id, resultText(block.content), block.is_error === true, context))
    } else if (block.type === "image") parts.push(imagePart(block.image, context.asked))
    else if (block.type !== "text") context.count(`content ${String(block.type)}`)
    else if (/^\[[\w ]{3,60}( for '[^\n]{0,4000}')?\] Result:/.test(text)) {
      writtenResult = true
      const output = text.slice(text.indexOf("Result:") + "Result:".length).trim()
      if (output !== "") takeWritten(output)
    } else if (writtenResult && !SAID.test(text.trim()) && !text.startsWith("<environment_details>")) takeWritten(text)
    else parts.push(...spoken(text, context.asked))
  }
  return { role: parts.some(({ type }) => type === "tool_result") ? "tool" : "user", parts, effects }

  function takeWritten(output: string): void {
    writtenResult = false
    add(
      resultOf(context.calls.get(""), undefined, output, /^(<error>|The tool execution failed)/.test(output), context),
    )
  }
  function add(result: { part: Part; effects: Effect[] }): void {
    parts.push(result.part)
    effects.push(...result.effects)
  }
}

function spoken(text: string, asked: Origin): Part[] {
  return splitInjected(text, ADDED).map(({ text: run, injected }) => ({
    type: "text",
    text: injected ? run : (SAID.exec(run)?.[2] ?? run),
    origin: injected || /^\[(TASK RESUMPTION|ERROR)\]/.test(run) ? "injected" : asked,
  }))
}

function resultOf(
  call: Call | undefined,
  id: string | undefined,
  output: string,
  is_error: boolean,
  { workspace }: TurnContext,
) {
  const around =
    call?.tool === "execute_command" ? /^Command executed [\s\S]{0,2000}?\nOutput:\n/.exec(output)?.[0] : undefined
  const code = /\bExit code: (-?\d{1,10})/.exec(around ?? "")?.[1]
  return finishedCall({
    tool: call?.tool,
    call_id: id,
    output,
    printed: output.slice(around?.length ?? 0),
    failed: is_error,
    exit_status: code === undefined ? undefined : Number(code),
    deed: call ? deedOfRooCode(call.tool, call.args, workspace) : {},
  })
}

function resultText(content: unknown): string {
  if (typeof content === "string") return content
  return records(content)
    .flatMap(({ text }) => string(text) ?? [])
    .join("\n")
}

function summaryOf(blocks: RawRecord[]): Part[] {
  return textParts(blocks, "agent").map(({ text }) => ({ type: "summary", text, origin: "agent" }))
}

function textParts(blocks: RawRecord[], origin: Origin): Part[] {
  return blocks.flatMap(({ text }): Part[] => (string(text) ? [{ type: "text", text: string(text)!, origin }] : []))
}
