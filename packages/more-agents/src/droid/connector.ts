import type { Connector, Cursor, Reading } from "../../../../src/agents/kit/connector.ts"
import {
  factsFirst,
  type Report,
  textAt,
  type UnitWithFacts,
  unitsBelow,
  unitWithFacts,
  withProblems,
} from "../../../../src/agents/kit/files.ts"
import { readJsonl } from "../../../../src/agents/kit/jsonl.ts"
import { digestOf, withoutBulk } from "../../../../src/agents/kit/messages.ts"
import { defined } from "../../../../src/core/defined.ts"
import { isRecord, parseObject, type RawRecord, record, string } from "../../../../src/core/record.ts"
import { droidRoots } from "../records.ts"
import { parseDroid } from "./parse.ts"

/** Factory's Droid: a file of lines for each session, and its settings beside it, with what it took. */
export const droidConnector: Connector = {
  source: "droid",
  version: 1,
  roots: droidRoots,
  discover: (root) =>
    withProblems(function* (report) {
      for (const unit of unitsBelow(root, /\.jsonl$/, MAX_FOLDERS, report))
        yield unitWithFacts(unit, settingsOf(unit.path, report))
    }),
  watched: (root) => [{ folder: root, depth: MAX_FOLDERS, files: /\.(jsonl|settings\.json)$/ }],
  read,
  parse: parseDroid,
  identify,
}

const MAX_FOLDERS = 3
const MAX_SETTINGS_BYTES = 16 << 20

/** Of the settings only what was used, and what it took. */
function settingsOf(path: string, report: Report): RawRecord | undefined {
  const text = textAt(path.replace(/\.jsonl$/, ".settings.json"), MAX_SETTINGS_BYTES, report)
  const settings = text === undefined ? undefined : parseObject(text)
  if (!settings) return undefined
  return { type: "dex-settings", model: settings.model, tokenUsage: settings.tokenUsage }
}

function read(unit: UnitWithFacts, after?: Cursor): Reading {
  return factsFirst(readJsonl(unit.path, after, { strip: stripDroid }), unit, after)
}

function identify(raw: RawRecord): string | undefined {
  const id = string(raw.id)
  return raw.type === "dex-settings" ? raw.type : id && `${raw.type} ${id}`
}

/** Without image bytes and signatures. */
function stripDroid(raw: RawRecord): RawRecord {
  const message = record(raw.message)
  const strip = (content: unknown) => (Array.isArray(content) ? content.map(stripBlock) : content)
  return withoutBulk({
    ...raw,
    ...defined({
      content: Array.isArray(raw.content) ? strip(raw.content) : undefined,
      message: message && { ...message, content: strip(message.content) },
    }),
  })
}

function stripBlock(value: unknown): unknown {
  if (!isRecord(value)) return value
  const { signature: _, ...block } = value
  if (block.type === "redacted_thinking") return { type: block.type }
  const source = record(block.source)
  const bytes = string(source?.data)
  if (block.type === "image" && bytes !== undefined)
    return {
      type: "image",
      image: digestOf(Buffer.from(bytes, "base64"), string(source?.media_type) ?? string(source?.mediaType)),
    }
  return Array.isArray(block.content) ? { ...block, content: block.content.map(stripBlock) } : block
}
