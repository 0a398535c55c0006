import { createHash } from "node:crypto"
import { isoDate } from "../../core/dates.ts"
import { messageText } from "../../core/format.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import { safe, safeLine } from "../../render/terminal.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../../store/history/store.ts"
import type { MapFormat } from "../map.ts"

/**
 * The smallest piece of a batch: a message, or several lines of a long message. Every line of text begins with "| ", so that
 * nothing in it can look like an instruction, another message or the end of the data.
 */
export type BatchUnit = {
  number: number
  /** True if this is not the start of its message. */
  isContinuation: boolean
  chars: number
  /** A hash of the unit's text. */
  hash: string
}

/** The sizes of a conversation's units, without their text. Batches are packed from them. */
export type MeasuredConversation = {
  ref: Ref
  at: number
  format: MapFormat
  head: string
  units: BatchUnit[]
  /** The number of characters before each unit; the last entry is the total. */
  charsBefore: number[]
}

/** Consecutive units of a conversation. */
export type Piece = { ref: Ref; from: number; count: number }

const MAX_PROJECT_CHARS = 60
/** Matches every character that a reader may take for a line end. */
const LINE_END = /[\n\u2028\u2029]/

export async function measureConversation(
  store: HistoryReader,
  row: ConversationRow,
  maxChars: number,
  format: MapFormat,
): Promise<MeasuredConversation> {
  const head = headOf(row)
  const texts = await unitTexts(store, row.ref, maxChars - head.length, format)
  const units = texts.map(({ number, isContinuation, text }) => ({
    number,
    isContinuation,
    chars: text.length,
    hash: hashOf(text),
  }))
  const charsBefore = [0]
  for (const { chars } of units) charsBefore.push(charsBefore.at(-1)! + chars)
  return { ref: row.ref, at: row.started_at ?? row.ended_at ?? 0, format, head, units, charsBefore }
}

/** The length of a piece as the model sees it. */
export function pieceLength({ head, units, charsBefore }: MeasuredConversation, from: number, count: number): number {
  const first = units[from]!
  return (
    head.length +
    (first.isContinuation ? continuationHead(first.number).length : 0) +
    charsBefore[from + count]! -
    charsBefore[from]!
  )
}

export function hashOfPiece({ head, units }: MeasuredConversation, from: number, count: number): string {
  return hashOf([head, ...units.slice(from, from + count).map(({ hash }) => hash)].join("\n"))
}

/** The text of a piece. Undefined if the conversation has changed since it was measured. */
export async function readPieceText(
  store: HistoryReader,
  measured: MeasuredConversation,
  { from, count }: Piece,
  maxChars: number,
): Promise<string | undefined> {
  const { head, ref, units, format } = measured
  const texts = (await unitTexts(store, ref, maxChars - head.length, format)).slice(from, from + count)
  const isUnchanged = texts.length === count && texts.every(({ text }, i) => hashOf(text) === units[from + i]!.hash)
  if (!isUnchanged) return undefined
  return `${head}${texts[0]!.isContinuation ? continuationHead(texts[0]!.number) : ""}${texts.map(({ text }) => text).join("")}`
}

/**
 * The line above a conversation. It contains nothing that changes while a conversation continues, such as its title, so that
 * cached answers stay valid.
 */
function headOf(row: ConversationRow): string {
  const facts = [
    formatRef(row.ref),
    row.started_at === undefined ? undefined : isoDate(row.started_at).slice(0, 10),
    row.project === undefined
      ? undefined
      : `project ${JSON.stringify(safeLine(row.project).slice(-MAX_PROJECT_CHARS))}`,
  ]
  return `=== ${facts.filter((fact) => fact !== undefined).join(" · ")}\n`
}

function continuationHead(number: number): string {
  return `#${number} goes on\n`
}

type UnitText = { number: number; isContinuation: boolean; text: string }

async function unitTexts(store: HistoryReader, ref: Ref, maxChars: number, format: MapFormat): Promise<UnitText[]> {
  const messages = await store.messages(ref)
  return messages
    .filter((message) => !message.superseded && !message.copied)
    .flatMap((message) => splitMessage(message, maxChars, format))
}

/** Splits a message into units at line ends. A line that is longer than a unit is split too. */
function splitMessage(message: StoredMessage, maxChars: number, format: MapFormat): UnitText[] {
  const { number, role } = message
  const content = safe(messageText(message, format)).trimEnd()
  if (content === "") return []
  const parts = message.parts.filter((part) => messageText({ parts: [part] }, format) !== "")
  const head = `#${number} ${role}, words of: ${[...new Set(parts.map((part) => part.origin))].join(", ")}\n`
  const maxTextLength = Math.max(40, maxChars - Math.max(head.length, continuationHead(number).length))
  const units: UnitText[] = []
  let text = head
  for (const line of content.split(LINE_END).flatMap((one) => breakLine(one, maxTextLength - 3))) {
    const dataLine = `| ${line}\n`
    if (text.length + dataLine.length > maxTextLength + (units.length === 0 ? head.length : 0) && text !== head) {
      units.push({ number, isContinuation: units.length > 0, text })
      text = ""
    }
    text += dataLine
  }
  return [...units, { number, isContinuation: units.length > 0, text }]
}

function breakLine(line: string, maxChars: number): string[] {
  if (line.length <= maxChars) return [line]
  const pieces = []
  for (let start = 0; start < line.length; ) {
    const splitsPair = (line.charCodeAt(start + maxChars - 1) & 0xfc00) === 0xd800
    const end = start + maxChars - (splitsPair ? 1 : 0)
    pieces.push(line.slice(start, end))
    start = end
  }
  return pieces
}

export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 22)
}
