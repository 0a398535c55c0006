import type { Connector } from "../../../../src/agents/kit/connector.ts"
import { unitsBelow, withProblems } from "../../../../src/agents/kit/files.ts"
import { readJsonl } from "../../../../src/agents/kit/jsonl.ts"
import { digestOf, withoutBulk } from "../../../../src/agents/kit/messages.ts"
import { defined } from "../../../../src/core/defined.ts"
import { type RawRecord, record, records, string } from "../../../../src/core/record.ts"
import { piRoots } from "../records.ts"
import { parsePi } from "./parse.ts"

/** Pi: one file for each session, in a folder that is named after where it was started. A session is a tree. */
export const piConnector: Connector = {
  source: "pi",
  version: 2,
  roots: piRoots,
  discover: (root) => withProblems((report) => unitsBelow(root, /\/.*\.jsonl$/, 1, report)),
  watched: (root) => [{ folder: root, depth: 1, files: /\.jsonl$/ }],
  read: (unit, after) => readJsonl(unit.path, after, { strip: stripPiEntry }),
  parse: parsePi,
  identify,
}

function identify(entry: RawRecord): string | undefined {
  const id = string(entry.id)
  return id && `${entry.type} ${id}`
}

/** Without image bytes, signatures, and the copy of a whole file that stands beside what was shown of it. */
export function stripPiEntry(entry: RawRecord): RawRecord {
  const message = record(entry.message)
  if (!message) return withoutBulk(entry)
  const { details, ...rest } = message
  const { diff, exitCode } = record(details) ?? {}
  const kept = defined({ diff, exitCode })
  const content = Array.isArray(rest.content) ? { content: records(rest.content).map(stripPart) } : {}
  return withoutBulk({
    ...entry,
    message: { ...rest, ...content, ...defined({ details: Object.keys(kept).length > 0 ? kept : undefined }) },
  })
}

function stripPart({ thinkingSignature: _, textSignature: __, thoughtSignature: ___, ...part }: RawRecord): RawRecord {
  if (part.type !== "image" || typeof part.data !== "string") return part
  const { data, ...rest } = part
  return { ...rest, image: digestOf(Buffer.from(data, "base64"), string(part.mimeType)) }
}

/** omp keeps a session's title in the first line, which it rewrites in place. */
export function ompDifferences(parent: Connector): Partial<Connector> {
  return {
    parse: (raw, unit) => {
      const records = [...raw]
      const { conversations, unknown } = parent.parse(records, unit)
      const text = string(records.findLast(({ type }: RawRecord) => type === "title")?.title)
      const titled = conversations.map((one) =>
        text === undefined || one.title ? one : { ...one, title: { text, from: "agent" as const } },
      )
      return { conversations: titled, unknown }
    },
  }
}
