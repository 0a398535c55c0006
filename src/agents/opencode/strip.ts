import { defined } from "../../core/defined.ts"
import type { RawRecord } from "../../core/record.ts"
import { array, isRecord, record, string } from "../../core/record.ts"
import { digestOf, digestOfDataUri, withoutBulk } from "../kit/kept-text.ts"

/** A row without what nobody needs twice: provider signatures, copies of whole files, editor diagnostics, image bytes. */
export function stripOpencode(row: RawRecord): RawRecord {
  const data = record(row.data)
  if (!data) return withoutBulk(row)
  const stripped =
    row.table === "part" ? stripPart(data) : row.table === "message" ? stripMessage(data) : stripEvent(data)
  return withoutBulk({ ...row, data: stripped })
}

/** `summary.diffs` of a prompt holds every changed file before and after; `system` the whole system prompt. */
function stripMessage({ system: _, tools: __, summary, ...rest }: RawRecord): RawRecord {
  if (!isRecord(summary)) return summary === undefined ? rest : { ...rest, summary }
  const { diffs: ___, ...kept } = summary
  return { ...rest, summary: kept }
}

/** `metadata` of a part is what the provider wants to see again: signatures, encrypted reasoning. */
function stripPart({ metadata: _, ...part }: RawRecord): RawRecord {
  if (part.type === "file") return withoutBytes(part)
  const state = record(part.state)
  return state ? { ...part, state: stripState(state) } : part
}

function stripState(state: RawRecord): RawRecord {
  const metadata = record(state.metadata)
  return {
    ...state,
    ...defined({
      metadata: metadata && stripMetadata(metadata, state.output),
      attachments: Array.isArray(state.attachments) ? withoutBytesAll(state.attachments) : undefined,
      content: Array.isArray(state.content) ? withoutBytesAll(state.content) : undefined,
    }),
  }
}

function stripMetadata(metadata: RawRecord, output: unknown): RawRecord {
  const { diagnostics: _, display: __, preview: ___, ...rest } = metadata
  if (isRecord(rest.filediff)) rest.filediff = withoutCopies(rest.filediff)
  if (Array.isArray(rest.files)) rest.files = rest.files.map((file) => (isRecord(file) ? withoutCopies(file) : file))
  if (typeof rest.output === "string" && typeof output === "string" && output.includes(rest.output)) delete rest.output
  return rest
}

function withoutCopies({ before: _, after: __, oldContent: ___, newContent: ____, ...rest }: RawRecord): RawRecord {
  return rest
}

/** A message of the newer tables: its parts are inside it. `recent` of a compaction repeats the messages before it. */
function stripEvent({
  native: _,
  providerState: __,
  providerContext: ___,
  recent: ____,
  ...rest
}: RawRecord): RawRecord {
  return {
    ...rest,
    ...defined({
      files: Array.isArray(rest.files) ? withoutBytesAll(rest.files) : undefined,
      content: Array.isArray(rest.content) ? rest.content.map(stripEventPart) : undefined,
    }),
  }
}

function stripEventPart(value: unknown): unknown {
  if (!isRecord(value)) return value
  const { native: _, providerState: __, providerResultState: ___, ...part } = value
  if (part.type !== "tool") {
    const { state: ____, ...rest } = part // an older name of `native`
    return rest
  }
  const state = record(part.state)
  return state ? { ...part, state: stripState(state) } : part
}

function withoutBytesAll(values: unknown): unknown[] {
  return array(values).map((value) => (isRecord(value) ? withoutBytes(value) : value))
}

function withoutBytes(file: RawRecord): RawRecord {
  if (typeof file.data === "string")
    return { ...file, data: digestOf(Buffer.from(file.data, "base64"), string(file.mime)) }
  for (const field of ["url", "uri"]) {
    const address = string(file[field])
    const digest = address === undefined ? undefined : digestOfDataUri(address)
    if (digest) return { ...file, [field]: digest }
  }
  return file
}
