import { describeToolCall } from "../../core/call-words.ts"
import { localMinute } from "../../core/dates.ts"
import { outcomesOf, outcomeWords } from "../../render/fold.ts"
import { patchText } from "../../render/patch.ts"
import { isFromPerson } from "../../render/speaker.ts"
import { many } from "../../render/words.ts"
import type { SharedMessage } from "./redacted-again.ts"
import { removedSecretLines, type SharedConversation } from "./share-html.ts"

/** Formats a conversation as Markdown: text as it was written, one line per tool call, and changes as diffs. */
export function shareMarkdown({ title, agent, date, messages, taken_out }: SharedConversation): string {
  const outcomes = outcomesOf(messages)
  const pieces = [`# ${oneLine(title)}`, `${agent}, ${date.slice(0, 10)}, ${many(messages.length, "message")}`]
  let speaker: string | undefined
  for (const message of messages) {
    const texts = message.parts.map((part) => partMarkdown(part, outcomes)).filter((text) => text !== "")
    if (texts.length === 0) continue
    const name = speakerOf(message, agent)
    if (name !== speaker) pieces.push(`## ${name}${message.at === undefined ? "" : ` · ${localMinute(message.at)}`}`)
    speaker = name
    pieces.push(...texts)
  }
  const removed = removedSecretLines(taken_out)
  pieces.push(
    "## Removed secrets",
    removed.length === 0 ? "No secret was found." : removed.map((line) => `- ${line}`).join("\n"),
  )
  return `${pieces.join("\n\n")}\n`
}

function speakerOf(message: SharedMessage, agent: string): string {
  return isFromPerson(message) ? "You" : message.role === "system" ? "System" : agent
}

function partMarkdown(part: SharedMessage["parts"][number], outcomes: ReturnType<typeof outcomesOf>): string {
  if (part.type === "text") return part.origin === "injected" ? "" : part.text.trim()
  if (part.type === "summary") return `> Summary of what came before\n>\n${blockQuote(part.text)}`
  if (part.type !== "tool_call") return ""
  const outcome = (part.call_id !== undefined && outcomes.get(part.call_id)) || {}
  const words = [
    part.tool,
    `\`${oneLine(describeToolCall(part.text).what).slice(0, 300).replaceAll("`", "'")}\``,
    ...outcomeWords(outcome),
  ]
  const hunks = outcome.result?.hunks
  return hunks?.length ? `- ${words.join(" · ")}\n\n${codeBlock(patchText(hunks), "diff")}` : `- ${words.join(" · ")}`
}

/** Puts the text between fences that are longer than any run of backticks in it. */
function codeBlock(text: string, language: string): string {
  const longestRun = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = "`".repeat(longestRun + 1)
  return `${fence}${language}\n${text}\n${fence}`
}

function blockQuote(text: string): string {
  return text
    .trim()
    .split("\n")
    .map((line) => `> ${line}`)
    .join("\n")
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim()
}
