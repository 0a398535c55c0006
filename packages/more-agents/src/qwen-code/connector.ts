import { join } from "node:path"
import type { Connector, Unit, Unreadable, Watched } from "../../../../src/agents/kit/connector.ts"
import {
  entriesOf,
  objectAt,
  type Report,
  readLines,
  unitAt,
  unitWithFacts,
  withProblems,
} from "../../../../src/agents/kit/files.ts"
import { cutLongTexts, digestOf } from "../../../../src/agents/kit/messages.ts"
import {
  HOOK_TIMEOUT_S,
  type HookEvent,
  NO_SUBAGENT,
  openSkill,
  proactiveHooks,
  serverStart,
  syncHook,
  type Wiring,
} from "../../../../src/agents/kit/wiring.ts"
import { withoutUndefined } from "../../../../src/core/defined.ts"
import { type RawRecord, record, records, string } from "../../../../src/core/record.ts"
import { qwenCodeFolder, qwenCodeRoots } from "../records.ts"
import { parseQwenCode } from "./parse.ts"

/**
 * Reads Qwen Code's sessions: a file per session, in a folder per project. Its records form a tree, as in Claude Code's files.
 */
export const qwenCodeConnector: Connector = {
  source: "qwen_code",
  version: 2,
  roots: qwenCodeRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched,
  read: readLines(stripRecord),
  parse: parseQwenCode,
  identify: ({ uuid, type }) => (type === "dex-subagent" ? type : string(uuid)),
}

const MAX_META_BYTES = 1 << 20
/** The folders that contain sessions. Earlier versions used `tmp`. */
const SESSION_FOLDERS = ["projects", "tmp"]

function watched(root: string): Watched[] {
  return SESSION_FOLDERS.map((folder) => ({
    folder: join(root, folder),
    depth: 3,
    files: /^[^/]+\/(chats|subagents\/[^/]+)\/[^/]+\.jsonl$/,
  }))
}

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  for (const sessionFolder of SESSION_FOLDERS)
    for (const project of entriesOf(join(root, sessionFolder), report)) {
      if (!project.isDirectory()) continue
      const folder = join(root, sessionFolder, project.name)
      yield* transcriptsIn(join(folder, "chats"), project.name, report)
      for (const session of entriesOf(join(folder, "subagents"), report))
        if (session.isDirectory())
          yield* transcriptsIn(join(folder, "subagents", session.name), `${project.name}/${session.name}`, report)
    }
}

function* transcriptsIn(folder: string, keyPrefix: string, report: Report): Iterable<Unit> {
  for (const { name } of entriesOf(folder, report)) {
    if (!name.endsWith(".jsonl")) continue
    const unit = unitAt(join(folder, name), `${keyPrefix}/${name}`, report)
    if (!unit) continue
    yield unitWithFacts(unit, subagentAt(join(folder, name.replace(/jsonl$/, "meta.json")), report))
  }
}

/** Reads a subagent's purpose, and the call that started it, from the file next to its transcript. */
function subagentAt(path: string, report: Report): RawRecord | undefined {
  const meta = objectAt(path, MAX_META_BYTES, report)
  const [description, call] = [string(meta?.description), string(meta?.toolUseId)]
  return meta && { type: "dex-subagent", description: description || undefined, call: call || undefined }
}

/** Removes image bytes, signatures, copies of files, and telemetry. */
function stripRecord(raw: RawRecord): RawRecord {
  const { systemPayload, message, toolCallResult, ...rest } = raw
  const payload = record(systemPayload)
  const keepsPayload = raw.subtype !== "ui_telemetry" && raw.subtype !== "file_history_snapshot"
  const content = record(message)
  return cutLongTexts({
    ...rest,
    ...withoutUndefined({
      systemPayload: payload && keepsPayload ? payload : undefined,
      message: content && { ...content, parts: records(content.parts).map(stripPart) },
      toolCallResult: record(toolCallResult) && stripResult(record(toolCallResult)!),
    }),
  })
}

function stripPart({ thoughtSignature: _, ...part }: RawRecord): RawRecord {
  const inline = record(part.inlineData)
  if (typeof inline?.data !== "string") return part
  return { image: digestOf(Buffer.from(inline.data, "base64"), string(inline.mimeType)) }
}

function stripResult({ responseParts: _, ...result }: RawRecord): RawRecord {
  const display = record(result.resultDisplay)
  if (!display) return result
  const { originalContent: __, newContent: ___, ...storedDisplay } = display
  return { ...result, resultDisplay: storedDisplay }
}

/** The output of Qwen Code's PreToolUse does not reach the model. */
export const QWEN_CODE_HOOKS: readonly HookEvent[] = [
  { event: "SessionStart" },
  { event: "UserPromptSubmit" },
  { event: "PostToolUse", tools: "read_file" },
  { event: "PostToolUseFailure", tools: "run_shell_command" },
]

export const qwenCodeWiring: Wiring = {
  signs: (machine) => ({ paths: [qwenCodeFolder(machine)], program: "qwen" }),
  trust:
    "calls dex's tools without asking you, since dex is marked as trusted. They change nothing but dex's own records.",
  files: (machine, bin) => [
    {
      path: join(qwenCodeFolder(machine), "settings.json"),
      additions: [
        { type: "property", path: ["mcpServers", "dex"], value: { ...serverStart(bin), trust: true } },
        ...["SessionStart", "SessionEnd"].flatMap((event) => syncHook(event, bin, "any shell")),
        ...proactiveHooks("qwen_code", QWEN_CODE_HOOKS, HOOK_TIMEOUT_S, bin, "any shell"),
      ],
    },
    openSkill(machine),
  ],
  note: () => NO_SUBAGENT,
}
