import { join } from "node:path"
import type { RawRecord } from "../../core/record.ts"
import { string } from "../../core/record.ts"
import type { Connector, Watched } from "../kit/connector.ts"
import { discoverCli, readCli } from "./cli.ts"
import { discoverIde, readIde } from "./ide.ts"
import { parseIde } from "./ide-parse.ts"
import { cursorRoots } from "./roots.ts"
import { discoverTranscripts, readTranscript } from "./transcripts.ts"
import { parseTurns } from "./turns.ts"

/**
 * Cursor keeps three stores that overlap: the editor's databases (the fullest), the command line's, and plain
 * transcripts of both. The same conversation has the same id in all of them; authority says which is shown.
 */
export const cursorConnector: Connector = {
  source: "cursor",
  version: 3,
  roots: cursorRoots,
  *discover(root, seen, scratch) {
    yield* discoverIde(root, seen, scratch)
    yield* discoverTranscripts(root)
    yield* discoverCli(root)
  },
  watched,
  read(unit, after, scratch) {
    if (unit.key.startsWith("ide:")) return readIde(unit, after, scratch)
    return unit.key.startsWith("cli:") ? readCli(unit, after, scratch) : readTranscript(unit, after)
  },
  parse: (records, unit) => (unit.key.startsWith("ide:") ? parseIde(records) : parseTurns(records, unit)),
  identify,
  tables: ["ItemTable", "cursorDiskKV"],
}

function watched(root: string): Watched[] {
  return [
    { folder: join(root, "globalStorage"), depth: 0, files: /^state\.vscdb(-wal)?$/ },
    { folder: join(root, "workspaceStorage"), depth: 1, files: /^[^/]+\/state\.vscdb(-wal)?$/ },
    { folder: join(root, "projects"), depth: Infinity, files: /^[^/]+\/agent-transcripts\// },
    { folder: join(root, "chats"), depth: 2, files: /\/store\.db(-wal)?$/ },
  ]
}

/** Lines of a transcript have no name: they are their content. */
function identify(record: RawRecord): string | undefined {
  if (record.type === "dex-file") return "dex-file"
  if (record.type === "composer" || record.type === "bubble") return `${record.type}:${string(record.id)}`
  return string(record.key)
}
