import type { Origin, Part } from "../../core/conversation.ts"
import type { RawRecord } from "../../core/record.ts"
import { number, records, string } from "../../core/record.ts"
import { combineUsage, type Usage } from "../../core/usage.ts"
import type { TextRun } from "../kit/injected.ts"
import { imagePart } from "../kit/kept-text.ts"

// How Codex's pieces of content and counts of tokens become ours.

type Split = (text: string) => TextRun[]
export const wholeText: Split = (text) => (text.trim() === "" ? [] : [{ text, injected: false }])
export const allInjected: Split = (text) => (text.trim() === "" ? [] : [{ text, injected: true }])

export function contentParts(piece: RawRecord, split: Split, speaker: Origin): Part[] {
  if (piece.type === "input_image" || piece.type === "image") {
    return piece.image_url ? [imagePart(piece.image_url, speaker, string(piece.image_url))] : []
  }
  const text = string(piece.text) ?? string(piece.refusal)
  if (text === undefined) return []
  return split(text).map((run) => ({ type: "text", text: run.text, origin: run.injected ? "injected" : speaker }))
}

/** `strip` left a note where the bytes were; an address on the network stays an address. */

export function textPart(text: unknown, origin: Origin): Part[] {
  const said = string(text)
  return said && said.trim() !== "" ? [{ type: "text", text: said, origin }] : []
}

export function thinking(text: string | undefined): Part[] {
  return text && text.trim() !== "" ? [{ type: "thinking", text, origin: "agent" }] : []
}

export function reasoningText(payload: RawRecord): string {
  return [...records(payload.summary), ...records(payload.content)]
    .flatMap((piece) => string(piece.text) ?? [])
    .join("\n\n")
}

export function itemsText(content: unknown): string {
  return records(content)
    .flatMap((piece) => string(piece.text) ?? [])
    .join("\n")
}

export function codexUsage(told: RawRecord | undefined): Usage | undefined {
  const input = number(told?.input_tokens)
  const output = number(told?.output_tokens)
  if (input === undefined && output === undefined) return undefined
  const cached = number(told?.cached_input_tokens) ?? 0
  const reasoning = number(told?.reasoning_output_tokens)
  return {
    input: Math.max(0, (input ?? 0) - cached),
    output: output ?? 0,
    cache_read: cached,
    cache_write: number(told?.cache_write_input_tokens) ?? 0,
    reasoning,
  }
}

export function usageSince(a: Usage | undefined, b: Usage | undefined): Usage | undefined {
  return a && b ? combineUsage(a, b, (x, y) => Math.max(0, x - y)) : a
}

/** The fields that are texts. */
export function withText<K extends string>(fields: Record<K, unknown>): Partial<Record<K, string>> {
  const kept: Partial<Record<K, string>> = {}
  for (const key in fields) {
    const text = string(fields[key])
    if (text !== undefined) kept[key] = text
  }
  return kept
}
