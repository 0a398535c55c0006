import { describeToolCall } from "./call-words.ts"
import type { Part } from "./conversation.ts"
import { findPlan } from "./plan.ts"
import { estimateTokens } from "./tokens.ts"

export const FORMATS = ["full", "stripped", "user_only", "outline"] as const
export type Format = (typeof FORMATS)[number]

/** The number of characters of a tool's input that the stripped format shows. An input can be a complete file. */
const CALL_CHARS = 400
const OUTLINE_CHARS = 100

/** The fields that are needed to format a part. Stored parts have them, and so do the parts in a tool's output. */
type ShownPart = Pick<Part, "type" | "text"> & {
  origin: string
  tool?: string
  is_error?: boolean
  mime?: string
  bytes?: number
}

/**
 * Formats a message. `full` is everything; `stripped` shortens tool inputs and replaces tool outputs and injected text with their
 * size; `user_only` contains the person's words and the plans that they approved, and may be empty; `outline` is the first line.
 * Except in an outline, parts for which `isFull` returns true are shown in full.
 */
export function messageText<P extends ShownPart>(
  message: { parts: readonly P[] },
  format: Format,
  isFull: (part: P) => boolean = () => false,
): string {
  if (format === "outline") return outlineOf(message, [])
  const pieces = message.parts.map((part) => partText(part, isFull(part) ? "full" : format))
  return pieces.filter((text) => text !== "").join("\n\n")
}

export function messageTokens(message: { parts: readonly ShownPart[] }, format: Format): number {
  return estimateTokens(messageText(message, format))
}

function partText(part: ShownPart, format: Exclude<Format, "outline">): string {
  if (format === "user_only")
    return part.type === "text" && part.origin === "person" ? part.text : (findPlan(part) ?? "")
  const isFull = format === "full"
  switch (part.type) {
    case "text":
      return isFull || part.origin !== "injected" ? part.text : `[injected text: ${sizeText(part.text)}]`
    case "thinking":
      return `[thinking] ${part.text}`
    case "summary":
      return `[summary of what came before] ${part.text}`
    case "tool_call":
      return `[${part.tool}] ${isFull ? part.text : clip(part.text, CALL_CHARS)}`
    case "tool_result": {
      const label = `${part.tool ?? "tool"} ${part.is_error ? "failed" : "result"}`
      return isFull ? `[${label}] ${part.text}` : `[${label}: ${sizeText(part.text)}]`
    }
    case "image":
      return `[image${part.mime ? ` ${part.mime}` : ""}${part.bytes ? `, ${Math.ceil(part.bytes / 1024)} kB` : ""}]`
  }
}

/**
 * Returns the first meaningful line of a message. The person's or the agent's words take precedence over a tool's. A call looks
 * like `[Read: cmd/x.go]`; paths below `roots` are shortened.
 */
export function outlineOf(message: { parts: readonly ShownPart[] }, roots: readonly string[]): string {
  const parts = message.parts.filter((part) => partText(part, "stripped").trim() !== "")
  const spokenPart = parts.find((part) => part.type === "text" && part.origin !== "injected")
  const firstPart = spokenPart ?? parts.find((part) => part.type !== "thinking") ?? parts[0]
  if (!firstPart) return ""
  const plan = findPlan(firstPart)
  if (firstPart.type === "tool_call" && plan === undefined) return callLine(firstPart, roots)
  return clip((plan ?? partText(firstPart, "stripped").trim()).split("\n", 1)[0] ?? "", OUTLINE_CHARS, "…")
}

function callLine({ tool, text }: ShownPart, roots: readonly string[]): string {
  const line = describeToolCall(text).what.trim().split("\n", 1)[0] ?? ""
  const what = roots.reduce((shown, root) => shown.replaceAll(`cd ${root} && `, "").replaceAll(`${root}/`, ""), line)
  if (what === "") return `[${tool}]`
  if (what.length <= OUTLINE_CHARS) return `[${tool}: ${what}]`
  // Keep the end of a path, which names the file.
  return /^\S*[\\/]\S+$/.test(what)
    ? `[${tool}: …${what.slice(-OUTLINE_CHARS)}]`
    : `[${tool}: ${what.slice(0, OUTLINE_CHARS)}…]`
}

function clip(text: string, maxChars: number, mark = ` … (+${text.length - maxChars} characters)`): string {
  return text.length > maxChars ? text.slice(0, maxChars) + mark : text
}

function sizeText(text: string): string {
  return `${formatCount(estimateTokens(text))} tokens`
}

/** Formats a count as 42, 1.2k, 15k or 3.4M. */
export function formatCount(count: number): string {
  if (count < 1000) return String(count)
  const [value, unit] = count < 999_500 ? [count / 1000, "k"] : [count / 1_000_000, "M"]
  return `${value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)}${unit}`
}

/** Formats a count as 12,345. Does not use Intl, which takes as long to load as Node takes to start. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",")
}

/** Joins names as "a, b and c". */
export function joinNames(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`
}

const MAX_FILE_NAME_LENGTH = 60

/** A file name made from a title, valid on any system. */
export function fileNameFromTitle(title: string): string {
  const words = title
    .toLowerCase()
    .normalize("NFKD")
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, MAX_FILE_NAME_LENGTH)
    .replaceAll(/^-+|-+$/g, "")
  return words === "" ? "conversation" : words
}
