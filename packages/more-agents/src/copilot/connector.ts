import { join } from "node:path"
import type { Connector, Unit, Unreadable } from "../../../../src/agents/kit/connector.ts"
import {
  entriesOf,
  fileAt,
  type Report,
  readLines,
  textAt,
  unitOfFile,
  unitWithFacts,
  withProblems,
} from "../../../../src/agents/kit/files.ts"
import { cutLongTexts, digestOf } from "../../../../src/agents/kit/messages.ts"
import { serverStart, type Wiring } from "../../../../src/agents/kit/wiring.ts"
import { type RawRecord, record, string } from "../../../../src/core/record.ts"
import { copilotFolder, copilotRoots } from "../records.ts"
import { parseCopilot } from "./parse.ts"

/**
 * Reads Copilot CLI: one log of events per session. Since version 1.0, the log is in a folder, together with a file that has
 * the session's name.
 */
export const copilotConnector: Connector = {
  source: "copilot",
  version: 1,
  roots: copilotRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [{ folder: root, depth: 1, files: /^([^/]+\.jsonl|[^/]+\/(events\.jsonl|workspace\.yaml))$/ }],
  read: readLines(stripEvent),
  parse: parseCopilot,
  identify: ({ id, type }) => (type === "dex-session" ? "dex-session" : string(id)),
}

const MAX_WORKSPACE_BYTES = 1 << 20

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  const units = new Map<string, Unit>()
  for (const entry of entriesOf(root, report)) {
    const flatId = /^(.+)\.jsonl$/.exec(entry.name)?.[1]
    if (!entry.isDirectory() && flatId === undefined) continue
    const path = flatId === undefined ? join(root, entry.name, "events.jsonl") : join(root, entry.name)
    const stat = fileAt(path, report)
    if (!stat) continue
    const id = flatId ?? entry.name
    // If a session has both a file and a folder, the folder was written by the newer version.
    if (flatId === undefined || !units.has(id)) {
      const facts = flatId === undefined ? workspaceAt(join(root, entry.name, "workspace.yaml"), report) : undefined
      units.set(id, unitWithFacts(unitOfFile(path, id, stat), facts))
    }
  }
  yield* units.values()
}

/** Reads the session's name from a file with lines such as `key: value`. Everything else in that file is also in the events. */
function workspaceAt(path: string, report: Report): RawRecord | undefined {
  const text = textAt(path, MAX_WORKSPACE_BYTES, report) ?? ""
  const field = (key: string) => new RegExp(`^${key}: *(.*)$`, "m").exec(text)?.[1]?.trim()
  const name = field("name")?.replace(/^(["'])(.*)\1$/, "$2")
  return name ? { type: "dex-session", name, user_named: field("user_named") === "true" ? true : undefined } : undefined
}

/**
 * Removes measurements and data that only Copilot can read. Replaces Copilot's instructions, which are the same in every
 * session, with their digest.
 */
function stripEvent(event: RawRecord): RawRecord {
  const data = record(event.data)
  if (!data) return cutLongTexts(event)
  const { encryptedContent: _, reasoningOpaque: __, toolTelemetry: ___, transformedContent: ____, ...rest } = data
  if (event.type === "system.message" && typeof rest.content === "string")
    return { ...event, data: { ...rest, content: digestOf(Buffer.from(rest.content)) } }
  return cutLongTexts({ ...event, data: rest })
}

export const copilotWiring: Wiring = {
  signs: (machine) => ({ paths: [copilotFolder(machine)], program: "copilot" }),
  files: (machine, bin) => [
    {
      path: join(copilotFolder(machine), "mcp-config.json"),
      additions: [
        {
          type: "property",
          path: ["mcpServers", "dex"],
          value: { type: "local", ...serverStart(bin), tools: ["*"] },
        },
      ],
    },
  ],
  note: () => "no sub-agent: untested with this program",
}
