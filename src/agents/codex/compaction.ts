import { createHash } from "node:crypto"
import type { Message } from "../../core/conversation.ts"
import type { RawRecord } from "../../core/record.ts"
import { records, string } from "../../core/record.ts"
import { messageParts } from "./items.ts"
import { itemsText } from "./parts.ts"
import { addMessage, type Draft, historyKey, type Rollout, speakerOf, wasSaid } from "./rollout.ts"

// A compaction replaces the history that goes to the model: by the people's prompts, and a summary of all else. It may also
// rewrite the rollout, of which only its first record, the compaction, and what follows are left then.

/** Where Codex has put no summary of its own, it begins like this. */
const SUMMARY_PREFIX = "Another language model started to solve this problem"

/**
 * The records of a rollout that was rewritten by a compaction, with those that it no longer has in the place where they
 * were. Undefined where the rollout does not begin with one.
 */
export function rejoinRollout(dropped: RawRecord[], now: RawRecord[]): RawRecord[] | undefined {
  const start = now.findIndex(({ type }) => type !== "dex-thread" && type !== "session_meta")
  const first = now.find((line) => !saysNothing(line))
  return first?.type === "compacted" ? [...now.slice(0, start), CUT, ...dropped, ...now.slice(start)] : undefined
}

/** Says that the records are of a rollout that was cut. */
const CUT: RawRecord = { type: "dex-cut" }

function saysNothing({ type, payload }: RawRecord): boolean {
  if (type === "event_msg") return QUIET_EVENTS.has((payload as RawRecord | undefined)?.type)
  return QUIET_RECORDS.has(type)
}

const QUIET_RECORDS = new Set<unknown>(["dex-thread", "session_meta", "turn_context", "world_state"])
const QUIET_EVENTS = new Set<unknown>(["task_started", "thread_settings_applied", "token_count"])

/**
 * The summary that stands for all before it. Where all before it is gone from the rollout, also the prompts that were taken
 * along: some of them may have been read nowhere else.
 */
export function takeCompacted(rollout: Rollout, payload: RawRecord, at?: number): void {
  const history = records(payload.replacement_history)
  const message = string(payload.message)
  // A remote compaction tells the summary only in the history that goes on; where that is encrypted, nobody can read it.
  const last = message === undefined && history.at(-1)?.type !== "compaction" ? history.at(-1) : undefined
  const text = message ?? string(itemsText(last?.content).trim())
  rollout.isCut ||= rollout.entries.length === 0
  if (rollout.isCut)
    takePrompts(
      rollout,
      history.filter((item) => item !== last && !isSummary(item, message)),
    )
  if (text === undefined || (message === undefined && wasSaid(rollout, text))) return
  addMessage(rollout, "system", [{ type: "summary", text, origin: "agent" }], { payload, at })
}

function isSummary({ content }: RawRecord, message: string | undefined): boolean {
  const text = itemsText(content)
  return text.startsWith(SUMMARY_PREFIX) || (message !== undefined && text.includes(message))
}

function takePrompts(rollout: Rollout, history: RawRecord[]): void {
  const times = new Map<string, number>()
  for (const item of history) {
    if (item.type !== "message" || item.role !== "user") continue
    const parts = messageParts(rollout, item)
    if (!parts.some(({ origin }) => origin === speakerOf(rollout, item))) continue
    const content = createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16)
    const repeat = times.get(content) ?? 0
    times.set(content, repeat + 1)
    // When it was said is not known.
    const copy: Message = { key: historyKey(rollout, item, `${content}:${repeat}`), role: "user", parts }
    rollout.entries.push({ message: copy, startsTurn: true, kind: "prompt", isStandIn: false, repeat })
  }
}

/** Leaves out the prompts of compactions that the rollout has itself, or an earlier compaction: only the others are messages. */
export function withoutCopies(drafts: Draft[]): Draft[] {
  if (!drafts.some(({ repeat }) => repeat !== undefined)) return drafts
  const own = drafts.filter(({ repeat, message }) => repeat === undefined && message.role === "user")
  const keys = new Set(own.map(({ message }) => message.key))
  const said = own.map(({ message }) => wordsOf(message))
  return drafts.filter(({ message, repeat }) => {
    if (repeat === undefined) return true
    const words = wordsOf(message)
    const known = keys.has(message.key) || said.filter((text) => isSame(text, words)).length > repeat
    if (!known) said.push(words)
    return !known
  })
}

function wordsOf({ parts }: Message): string {
  return parts.flatMap(({ text, origin }) => (origin === "injected" ? [] : text.trim())).join("\n")
}

/** A long prompt is shortened in its middle. */
function isSame(text: string, copy: string): boolean {
  if (text === copy) return true
  const [start, end] = copy.split(/…\d+ tokens truncated…/)
  return end !== undefined && text.startsWith(start!.trimEnd()) && text.endsWith(end.trimStart())
}
