import { join } from "node:path"
import { defined } from "../../core/defined.ts"
import { type RawRecord, record, records, string } from "../../core/record.ts"
import type { Connector, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { entriesOf, fileAt } from "../kit/folder.ts"
import { readJsonFile } from "../kit/json-file.ts"
import { digestOf, withoutBulk } from "../kit/kept-text.ts"
import { unitOfFile } from "../kit/unit-of-file.ts"
import { parseAmp } from "./parse.ts"
import { ampRoots } from "./roots.ts"

/** Amp's local threads: a file for each, written anew at every change. Newer versions keep threads on Amp's server. */
export const ampConnector: Connector = {
  source: "amp",
  version: 1,
  roots: ampRoots,
  discover,
  watched: (root): Watched[] => [{ folder: root, depth: 0, files: /^T-[^/]*\.json$/ }],
  read: (unit, after) => readJsonFile(unit.path, after, recordsOf),
  parse: parseAmp,
  identify: (entry) => (entry.type === "dex-thread" ? entry.type : undefined),
}

function* discover(root: string): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => void problems.push(problem)
  for (const { name } of entriesOf(root, report)) {
    if (!/^T-.*\.json$/.test(name)) continue
    const path = join(root, name)
    const stat = fileAt(path, report)
    if (stat) yield unitOfFile(path, name.slice(0, -".json".length), stat)
  }
  yield* problems
}

/** Of the thread itself only named fields: it also has traces of every request. */
function* recordsOf(whole: RawRecord): Generator<RawRecord> {
  const { v, id, created, title, agentMode, messages } = whole
  const { trees, platform } = record(record(whole.env)?.initial) ?? {}
  const ended = records(record(whole.meta)?.traces).map(({ endTime }) => endTime)
  yield { type: "dex-thread", v, id, created, title, agentMode, trees, platform, ended: ended.at(-1) }
  for (const message of records(messages)) yield stripMessage(message)
}

function stripMessage(message: RawRecord): RawRecord {
  const content = records(message.content).map(stripBlock)
  return withoutBulk({ ...message, ...defined({ content: Array.isArray(message.content) ? content : undefined }) })
}

function stripBlock({ signature: _, ...block }: RawRecord): RawRecord {
  const { data, ...source } = record(block.source) ?? {}
  if (block.type !== "image" || typeof data !== "string") return block
  const mime = string(source.mediaType) ?? string(source.media_type)
  return { type: "image", image: digestOf(Buffer.from(data, "base64"), mime) }
}
