import type { RawRecord } from "../../core/record.ts"
import { redactRecord } from "../../redact/redact.ts"
import { visibleIn } from "../../render/visible.ts"
import type { StoredMessage } from "../../store/history/store.ts"

export type TakenOut = { what: string; count: number; earlier?: boolean }
export type SharedMessage = Pick<StoredMessage, "number" | "role" | "at" | "parts">

const MARK = /\[REDACTED:([\w-]+)\]/g
const HOME = "your home folder's path"

/** Messages as others may get them: by the newest rules, without hidden signs, and without the home folder's path. */
export function redactedAgain(
  stored: readonly SharedMessage[],
  title: string,
  home: string,
  onlyTalk: boolean,
): { messages: SharedMessage[]; title: string; taken_out: TakenOut[] } {
  const talk = onlyTalk ? stored.map(withoutTools).filter(({ parts }) => parts.length > 0) : stored
  const messages = talk.map(({ number, role, at, parts }) => ({ number, role, at, parts }))
  const copy = structuredClone({ title, messages }) as unknown as RawRecord
  const earlier = marksIn(JSON.stringify(copy))
  const { record, redactions } = redactRecord(copy)
  let homes = 0
  const masked = everyText(record, (text) => {
    homes += text.match(homePattern(home))?.length ?? 0
    return withoutHome(text, home)
  })
  return {
    ...(visibleIn(masked).output as { title: string; messages: SharedMessage[] }),
    taken_out: [
      ...Object.entries(redactions).map(([what, count]) => ({ what, count })),
      ...(homes > 0 ? [{ what: HOME, count: homes }] : []),
      ...[...earlier].map(([what, count]) => ({ what, count, earlier: true })),
    ],
  }
}

/** `~` in place of the home folder's path. */
export function withoutHome(text: string, home: string): string {
  return text.replaceAll(homePattern(home), "~")
}

function withoutTools(message: SharedMessage): SharedMessage {
  return { ...message, parts: message.parts.filter((part) => part.type === "text" && part.origin !== "injected") }
}

function marksIn(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const [, rule] of text.matchAll(MARK)) counts.set(rule!, (counts.get(rule!) ?? 0) + 1)
  return counts
}

/** A folder whose name only begins like it is another one. A home that is the root is nobody's. */
function homePattern(home: string): RegExp {
  const escaped = home.replace(/[\\/]+$/, "").replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")
  return escaped.length < 3 ? /$^/g : new RegExp(`${escaped}(?![\\w.-])`, "g")
}

function everyText(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((one) => everyText(one, change))
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, everyText(inner, change)]))
}
