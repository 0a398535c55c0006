import { crc32 } from "node:zlib"
import { type ExportedItem, exportConnector, type Parsed, type UnitName } from "../../../src/agents/kit/connector.ts"
import { cutLongTexts, parsedFrom, uniqueKeys } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message } from "../../../src/core/conversation.ts"
import { type RawRecord, records, string, time } from "../../../src/core/record.ts"

/**
 * Reads Gemini's activity as Google Takeout exports it. An activity is a prompt with its answers, and does not say to which
 * conversation it belongs. So what was asked on one day (UTC) is one conversation: this does not change if a later export
 * contains more, or if Google has deleted old activities.
 */
export const geminiAppConnector = exportConnector({
  source: "gemini_app",
  version: 1,
  parse: parseGeminiApp,
  identify: activityId,
  exported: { itemOf, joinsItems: true, htmlIn: ({ safeHtmlItem }) => records(safeHtmlItem) },
})

function itemOf(activity: RawRecord): ExportedItem | undefined {
  const { header, products, title } = activity
  const labels = [header, ...(Array.isArray(products) ? products : [])].map(string)
  const at = typeof activity.time === "string" ? time(activity.time) : undefined
  if (!labels.some((label) => /gemini|bard/i.test(label ?? "")) || string(title) === undefined || at === undefined)
    return undefined
  return { key: new Date(at).toISOString().slice(0, 10), modifiedAt: at, records: [cutLongTexts(activity)] }
}

function activityId(activity: RawRecord): string {
  return `${string(activity.time)}:${crc32(string(activity.title) ?? "")}`
}

/** The words before a prompt. In other languages they are unknown, and stay. */
const PROMPT = /^(?:Prompted with: |Asked (?:Gemini|Bard): |(?:Prompted|Asked|Said) )/
/** Activities that are no prompts: feedback, settings, and documents that are also in an answer. */
const NO_PROMPT =
  /^(?:Created|Used|Added|Gave|Selected|Shared|Deleted|Viewed|Visited|Edited|Pinned|Renamed|Exported|Updated) /

function parseGeminiApp(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const uniqueKey = uniqueKeys()
  const activities = [...raw].filter((activity) => {
    const isKnown = string(activity.title) !== undefined && string(activity.time) !== undefined
    if (!isKnown) unknown.add(string(activity.type) ?? "(no type)")
    return isKnown
  })
  const messages = activities
    .sort((a, b) => (time(a.time) ?? 0) - (time(b.time) ?? 0))
    .flatMap((activity) => messagesOf(activity, uniqueKey(activityId(activity))))
  return parsedFrom({ id: unit.key.replace(/~\d+$/, ""), messages }, unknown)
}

function messagesOf(activity: RawRecord, key: string): Message[] {
  const title = string(activity.title)!
  const answers = records(activity.safeHtmlItem).flatMap(({ text }) => string(text) ?? [])
  if (NO_PROMPT.test(title) || (!PROMPT.test(title) && answers.length === 0)) return []
  const at = time(activity.time)
  const prompt = title.replace(PROMPT, "").trim()
  return [
    ...(prompt === ""
      ? []
      : [
          {
            key,
            role: "user" as const,
            at,
            parts: [{ type: "text" as const, text: prompt, origin: "person" as const }],
          },
        ]),
    ...answers.map((text, n) => ({
      key: `${key}:answer:${n}`,
      role: "assistant" as const,
      at,
      parts: [{ type: "text" as const, text, origin: "agent" as const }],
    })),
  ]
}
