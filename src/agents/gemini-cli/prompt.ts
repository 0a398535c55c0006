import { CONTEXT_TAG } from "../../core/context-tag.ts"
import type { Origin, Part } from "../../core/conversation.ts"
import type { RawRecord } from "../../core/record.ts"
import { record, string } from "../../core/record.ts"
import { splitInjected, type TextRun } from "../kit/injected.ts"
import { imagePart } from "../kit/kept-text.ts"

export type PromptParts = { parts: Part[]; isSummary: boolean }

/** What the agent and its hooks put into the user's turn. */
const ENVELOPES = [
  CONTEXT_TAG,
  "session_context",
  "hook_context",
  "loaded_context",
  "project_context",
  "environment_context",
]
const OPENINGS = [
  "This is the Gemini CLI. We are setting up the context for our chat.",
  "Here is the user's editor context",
  "Here is a summary of changes in the user's editor context",
  "System: Please continue.",
]
const FILES_BEGIN = "--- Content from referenced files ---"
const FILES_END = "--- End of content ---"

/**
 * A user message without its tool results. `displayed` is what the person saw themselves say, where the agent keeps it:
 * then only that is the person's, and the rest is what the agent made of it (files behind an @, a command's template).
 */
export function readPrompt(pieces: RawRecord[], displayed: RawRecord[], speaker: Origin): PromptParts {
  const texts = pieces.flatMap((piece) => string(piece.text) ?? [])
  const whole = texts.join("\n").trim()
  if (whole.startsWith("<state_snapshot>")) {
    return { parts: [{ type: "summary", text: whole, origin: "agent" }], isSummary: true }
  }
  const images = pieces.filter((piece) => record(piece.inlineData)).map((piece) => imagePart(piece.inlineData, speaker))
  const shown = displayed.flatMap((piece) => string(piece.text) ?? []).join("\n")
  const runs = splitPieces(texts).map((run) => ({ ...run, injected: run.injected || !isShown(run.text, shown) }))
  const unsaid = splitPieces([shown]).filter((run) => !run.injected && !runs.some((other) => isPartOf(other, run)))
  const parts = [...unsaid, ...runs].map(
    (run): Part => ({ type: "text", text: run.text, origin: run.injected ? "injected" : speaker }),
  )
  return { parts: [...parts, ...images], isSummary: false }
}

function isShown(text: string, shown: string): boolean {
  return shown === "" || shown.includes(text)
}

function isPartOf(said: TextRun, shown: TextRun): boolean {
  return !said.injected && (shown.text.includes(said.text) || said.text.includes(shown.text))
}

/** The files that the person named are added after the prompt, in pieces of their own or in the same text. */
function splitPieces(texts: string[]): TextRun[] {
  let inFiles = false
  return texts.flatMap((text) => {
    if (inFiles) {
      inFiles = !text.includes(FILES_END)
      return injected(text)
    }
    const begin = text.indexOf(FILES_BEGIN)
    if (begin === -1) return splitText(text)
    const end = text.indexOf(FILES_END, begin)
    inFiles = end === -1
    const after = end === -1 ? text.length : end + FILES_END.length
    return [...splitText(text.slice(0, begin)), ...injected(text.slice(begin, after)), ...splitText(text.slice(after))]
  })
}

function splitText(text: string): TextRun[] {
  if (OPENINGS.some((opening) => text.trimStart().startsWith(opening))) return injected(text)
  return splitInjected(text, ENVELOPES)
}

function injected(text: string): TextRun[] {
  return text.trim() === "" ? [] : [{ text: text.trim(), injected: true }]
}
