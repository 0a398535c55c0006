import type { RawRecord } from "../../core/record.ts"
import { record, string, time } from "../../core/record.ts"
import { contentText } from "./text.ts"

/** A prompt that waited is looked for among this many prompts after it, where several were sent as one. */
const LOOKAHEAD = 50
/** An attachment and a user record with the same text this close together are one prompt. */
const SAME_PROMPT_MS = 10_000

/**
 * Which records hold a prompt typed while the agent worked that no user record holds: `queue-operation` records (up to
 * 2.1.x the only trace of a prompt that was taken up in mid-turn) and `queued_command` attachments. What the person took
 * back into the input line (`popAll`) was not sent; slash commands tell of themselves elsewhere.
 */
export function onlyQueued(all: readonly RawRecord[]): Set<RawRecord> {
  const prompts = promptsIn(all)
  const told = new Set<RawRecord>()
  let waiting: RawRecord[] = []
  let next = 0
  for (const [index, raw] of all.entries()) {
    while (next < prompts.list.length && prompts.list[next]!.index < index) next++
    if (raw.type === "attachment" && record(raw.attachment)?.type === "queued_command") {
      if (!isSaidBeside(raw, prompts)) told.add(raw)
    } else if (raw.type === "queue-operation" && raw.operation === "popAll") {
      for (const taken of waiting) told.delete(taken)
      waiting = []
    } else if (raw.type === "queue-operation" && raw.operation === "enqueue") {
      const text = contentText(raw.content).trim()
      if (text === "" || /^\/[\w:-]+(\s|$)/.test(text) || isSaidLater(text, index, next, prompts)) continue
      told.add(raw)
      waiting.push(raw)
    }
  }
  return told
}

/** The text of a queued_command: its prompt is a string or blocks. */
export function queuedText(attachment: RawRecord): string {
  return contentText(attachment.prompt)
}

type Prompt = { index: number; text: string; raw: RawRecord }
type Prompts = { list: Prompt[]; byText: Map<string, Prompt[]>; uuids: Set<string> }

function promptsIn(all: readonly RawRecord[]): Prompts {
  const prompts: Prompts = { list: [], byText: new Map(), uuids: new Set() }
  for (const [index, raw] of all.entries()) {
    const attachment = raw.type === "attachment" ? record(raw.attachment) : undefined
    const queued = attachment?.type === "queued_command"
    if (raw.type !== "user" && !queued) continue
    const text = (queued ? queuedText(attachment) : ownText(record(raw.message)?.content)).trim()
    if (text === "") continue
    const prompt = { index, text, raw }
    prompts.list.push(prompt)
    const same = prompts.byText.get(text)
    if (same) same.push(prompt)
    else prompts.byText.set(text, [prompt])
    const uuid = string(raw.uuid)
    if (!queued && uuid !== undefined) prompts.uuids.add(uuid)
  }
  return prompts
}

/** The texts beside a tool result, but not the result. */
function ownText(content: unknown): string {
  if (!Array.isArray(content)) return contentText(content)
  return contentText(content.filter((block) => record(block)?.type !== "tool_result"))
}

/** Each prompt answers for one enqueued text: who typed "go on" twice said it twice. */
function isSaidLater(text: string, index: number, next: number, prompts: Prompts): boolean {
  const same = prompts.byText.get(text)
  const at = same ? same.findIndex((prompt) => prompt.index > index) : -1
  if (same && at !== -1) {
    same.splice(at, 1)
    return true
  }
  const joined = (prompt: Prompt) => prompt.text !== text && `\n${prompt.text}\n`.includes(`\n${text}\n`)
  return prompts.list.slice(next, next + LOOKAHEAD).some(joined)
}

function isSaidBeside(raw: RawRecord, prompts: Prompts): boolean {
  const attachment = record(raw.attachment)!
  const source = string(attachment.source_uuid)
  if (source !== undefined && prompts.uuids.has(source)) return true
  const at = time(raw.timestamp)
  const same = prompts.byText.get(queuedText(attachment).trim()) ?? []
  return same.some((prompt) => {
    const then = prompt.raw.type === "user" ? time(prompt.raw.timestamp) : undefined
    return at !== undefined && then !== undefined && Math.abs(then - at) < SAME_PROMPT_MS
  })
}
