import { join } from "node:path"
import type {
  Connector,
  Cursor,
  Machine,
  Reading,
  Unit,
  Unreadable,
  Watched,
} from "../../../../src/agents/kit/connector.ts"
import {
  entriesOf,
  prependFacts,
  type Report,
  readJsonFile,
  type UnitWithFacts,
  unitAt,
  unitWithFacts,
  withProblems,
  workspaceFolder,
} from "../../../../src/agents/kit/files.ts"
import { readJsonl } from "../../../../src/agents/kit/jsonl.ts"
import { cutLongTexts } from "../../../../src/agents/kit/messages.ts"
import { serverStart, type Wiring } from "../../../../src/agents/kit/wiring.ts"
import { array, isRecord, type RawRecord, records, string } from "../../../../src/core/record.ts"
import { vscodeRoots } from "../records.ts"
import { parseVscode } from "./parse.ts"

/**
 * Reads Copilot's chats in VS Code: one file per session, in the storage of its workspace. Before version 1.109, the file was
 * JSON that was rewritten completely; since then, it has been a log of changes.
 */
export const vscodeConnector: Connector = {
  source: "vscode",
  version: 1,
  roots: vscodeRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched,
  read,
  parse: parseVscode,
  identify: (raw) => (raw.type === "dex-workspace" ? raw.type : string(raw.requestId)),
}

const FOLDERS_WITHOUT_WORKSPACE = ["emptyWindowChatSessions", "transferredChatSessions"]
const SESSION_FILE = /\.jsonl?$/

function watched(root: string): Watched[] {
  return [
    {
      folder: join(root, "workspaceStorage"),
      depth: 2,
      files: /^[^/]+\/(chatSessions\/[^/]+\.jsonl?|workspace\.json)$/,
    },
    ...FOLDERS_WITHOUT_WORKSPACE.map((name) => ({
      folder: join(root, "globalStorage", name),
      depth: 0,
      files: SESSION_FILE,
    })),
  ]
}

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  for (const { name } of entriesOf(join(root, "workspaceStorage"), report)) {
    const storage = join(root, "workspaceStorage", name)
    const sessions = [...sessionsIn(join(storage, "chatSessions"), report)]
    const folder = sessions.length === 0 ? undefined : workspaceFolder(storage, report)
    const facts = folder === undefined ? undefined : { type: "dex-workspace", folder }
    yield* sessions.map((unit) => unitWithFacts(unit, facts))
  }
  for (const name of FOLDERS_WITHOUT_WORKSPACE) yield* sessionsIn(join(root, "globalStorage", name), report)
}

/** Finds sessions. A session that was written in both formats has two units, of which the log has the higher authority. */
function* sessionsIn(folder: string, report: Report): Generator<Unit> {
  for (const { name } of entriesOf(folder, report)) {
    if (!SESSION_FILE.test(name)) continue
    const path = join(folder, name)
    const unit = unitAt(path, name, report)
    if (unit) yield unit
  }
}

function read(unit: UnitWithFacts, after?: Cursor): Reading {
  const reading = unit.path.endsWith(".json")
    ? readJsonFile(unit.path, after, recordsOfFile)
    : readJsonl(unit.path, after, { strip: stripEntry })
  return prependFacts(reading, unit, after)
}

/** Yields one record for the session and one per request, so that a new request does not change the earlier records. */
function* recordsOfFile(file: RawRecord): Generator<RawRecord> {
  const { requests, ...session } = file
  yield stripVscode({ type: "dex-session", ...session })
  for (const request of records(requests)) yield stripVscode(request)
}

/**
 * Fields that are not stored: the state of the window, the person's identity, rendered prompts, attachments, and encrypted
 * thoughts.
 */
const OMITTED_FIELDS = new Set([
  ...["inputState", "requesterUsername", "responderUsername", "responderAvatarIconUri", "requesterAvatarIconUri"],
  ...["renderedUserMessage", "renderedGlobalContext", "variableData", "contentReferences", "codeCitations"],
  ...["encrypted", "followups", "iconPath", "editedFileEvents", "modelState", "responseMarkdownInfo"],
])

function stripVscode(raw: RawRecord): RawRecord {
  return cutLongTexts(withoutOmittedFields(raw) as RawRecord)
}

function stripEntry(entry: RawRecord): RawRecord | undefined {
  const isOmitted = array(entry.k).some((key) => typeof key === "string" && OMITTED_FIELDS.has(key))
  return isOmitted ? undefined : stripVscode(entry)
}

function withoutOmittedFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutOmittedFields)
  if (!isRecord(value)) return value
  const storedFields = Object.entries(value).filter(([key]) => !OMITTED_FIELDS.has(key))
  return Object.fromEntries(storedFields.map(([key, field]) => [key, withoutOmittedFields(field)]))
}

export const vscodeWiring: Wiring = {
  signs: (machine) => ({ paths: [userFolder(machine)] }),
  files: (machine, bin) => [
    {
      path: join(userFolder(machine), "mcp.json"),
      additions: [{ type: "property", path: ["servers", "dex"], value: { type: "stdio", ...serverStart(bin) } }],
    },
  ],
}

/** Returns the folder of the user's settings for VS Code's stable edition and its default profile. */
function userFolder({ home, env, platform }: Machine): string {
  if (platform === "darwin") return join(home, "Library", "Application Support", "Code", "User")
  if (platform === "win32") return join(env.APPDATA ?? join(home, "AppData", "Roaming"), "Code", "User")
  return join(env.XDG_CONFIG_HOME || join(home, ".config"), "Code", "User")
}
