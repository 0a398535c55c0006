import { defined } from "../../core/defined.ts"
import type { RawRecord } from "../../core/record.ts"
import { array, isRecord, record, records, string } from "../../core/record.ts"
import { digestOfDataUri, withoutBulk } from "../kit/kept-text.ts"

// Composers and bubbles carry copies of whole files, of the editor's state and of every request: what says something is
// named here, the rest is not kept.

const COMPOSER = [
  ...["_v", "name", "createdAt", "lastUpdatedAt", "unifiedMode", "isAgentic", "status", "subtitle", "subagentInfo"],
  ...["contextTokensUsed", "contextTokenLimit"],
]

export function stripComposer(composer: RawRecord): RawRecord {
  const model = string(record(composer.modelConfig)?.modelName)
  const fsPath = string(record(record(composer.workspaceIdentifier)?.uri)?.fsPath)
  return withoutBulk({
    ...pick(composer, COMPOSER),
    ...defined({
      modelConfig: model ? { modelName: model } : undefined,
      workspaceIdentifier: fsPath ? { uri: { fsPath } } : undefined,
    }),
  })
}

const BUBBLE = ["_v", "type", "text", "capabilityType", "unifiedMode", "createdAt", "tokenCount", "errorDetails"]
const TOOL = ["tool", "name", "toolCallId", "status", "rawArgs", "params", "result", "error", "userDecision"]
const TIMES = ["clientStartTime", "clientEndTime", "clientRpcSendTime", "clientSettleTime"]

export function stripBubble(bubble: RawRecord): RawRecord {
  const thinking = string(record(bubble.thinking)?.text) ?? string(bubble.thinking)
  const model = string(record(bubble.modelInfo)?.modelName)
  const timing = record(bubble.timingInfo)
  const tool = record(bubble.toolFormerData)
  const images = array(bubble.images).map(imageNote)
  const files = records(record(bubble.context)?.fileSelections).flatMap((file) => {
    const uri = record(file.uri)
    return string(uri?.fsPath) ?? string(uri?.path) ?? []
  })
  const hasText = string(bubble.text)?.trim()
  return withoutBulk({
    ...pick(bubble, BUBBLE),
    ...defined({
      richText: !hasText && string(bubble.richText) ? bubble.richText : undefined,
      thinking: thinking ? { text: thinking } : undefined,
      modelInfo: model ? { modelName: model } : undefined,
      timingInfo: timing && pick(timing, TIMES),
      toolFormerData: tool && pick(tool, TOOL),
      images: images.length > 0 ? images : undefined,
      files: files.length > 0 ? files : undefined,
    }),
  })
}

/** The bytes of an image are in the editor's own notation; what is kept says that there was one. */
function imageNote(image: unknown): RawRecord {
  const about = isRecord(image) ? image : {}
  const uri = string(about.data) ?? string(about.url) ?? ""
  const path = string(about.path)
  return { ...digestOfDataUri(uri), path: path || undefined }
}

function pick(from: RawRecord, fields: string[]): RawRecord {
  return Object.fromEntries(fields.flatMap((field) => (from[field] === undefined ? [] : [[field, from[field]]])))
}
