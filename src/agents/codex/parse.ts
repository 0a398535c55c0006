import type { Conversation, Kind, Title } from "../../core/conversation.ts"
import type { RawRecord } from "../../core/record.ts"
import { number, record, string, time } from "../../core/record.ts"
import { addRequest } from "../../core/usage.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { settleCall } from "./calls.ts"
import { takeCompacted, withoutCopies } from "./compaction.ts"
import { takeEvent } from "./events.ts"
import { letterParts, takeItem } from "./items.ts"
import { codexUsage, withText } from "./parts.ts"
import {
  addCwd,
  addMessage,
  countUnknown,
  type Draft,
  idOf,
  isSubagentThread,
  newRollout,
  type Rollout,
} from "./rollout.ts"

/**
 * What a rollout's records say. `response_item` records hold the conversation; events repeat it, and are read for what
 * only they tell: exit codes, diffs, tokens, rollbacks. Where a file has no response items of a kind, events stand in.
 */
export function parseRollout(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const rollout = newRollout(unit)
  for (const line of raw) take(rollout, line)
  for (const [id, call] of rollout.calls) settleCall(call, id)
  if (!rollout.sawTokenCount) {
    for (const { message, usage } of rollout.usageRecords) message.usage = addRequest(message.usage, usage)
  }
  const drafts = settleDrafts(rollout)
  const conversations = drafts.length === 0 ? [] : [conversationOf(rollout, drafts)]
  return { conversations, unknown: Object.fromEntries(rollout.unknown) }
}

const QUIET = new Set(["world_state", "security_risk_score", "inter_agent_communication_metadata"])

function take(rollout: Rollout, line: RawRecord): void {
  const at = time(line.timestamp)
  rollout.lastAt = at ?? rollout.lastAt
  const payload = record(line.payload)
  if (line.type === "dex-thread") rollout.thread = line
  else if (line.type === "dex-cut") rollout.isCut = true
  else if (!payload) takeBare(rollout, line, at)
  else {
    switch (line.type) {
      case "session_meta":
        takeMeta(rollout, payload)
        break
      case "turn_context":
        rollout.turn = string(payload.turn_id) ?? rollout.turn
        rollout.model = string(payload.model) ?? rollout.model
        addCwd(rollout, payload.cwd)
        break
      case "response_item":
        takeItem(rollout, payload, at, number(line.ordinal))
        break
      case "event_msg":
        takeEvent(rollout, payload, at)
        break
      case "compacted":
        takeCompacted(rollout, payload, at)
        break
      case "inter_agent_communication":
        addMessage(rollout, "user", letterParts(payload), { payload, at, kind: "letter", isStandIn: true })
        break
      case "token_usage_record": {
        const usage = codexUsage(record(payload.usage))
        if (usage && rollout.lastReply) rollout.usageRecords.push({ message: rollout.lastReply, usage })
        break
      }
      default:
        if (!QUIET.has(String(line.type))) countUnknown(rollout, String(line.type))
    }
  }
}

/** Until mid-2025 there was no envelope: a header, then the items themselves, with state records between. */
function takeBare(rollout: Rollout, line: RawRecord, at?: number): void {
  if (line.record_type === "state") return
  if (typeof line.type === "string") takeItem(rollout, line, at)
  else if (string(line.id) && line.timestamp !== undefined) takeMeta(rollout, line)
  else if (Object.keys(line).length > 0) countUnknown(rollout, "(no type)")
}

/** The first is the file's own. One of another thread opens the prefix that a fork has copied from it. */
function takeMeta(rollout: Rollout, meta: RawRecord): void {
  rollout.meta ??= meta
  rollout.scope = string(meta.id) ?? rollout.scope
  if (meta.id === rollout.meta.id) addCwd(rollout, meta.cwd)
}

/** Leaves out what events told again, and marks the turns that were rolled back. */
function settleDrafts(rollout: Rollout): Draft[] {
  const told = new Set(rollout.entries.flatMap((entry) => ("message" in entry && !entry.isStandIn ? entry.kind : [])))
  const drafts: Draft[] = []
  for (const entry of rollout.entries) {
    if ("turns" in entry) rollBack(drafts, entry.turns)
    else if (!entry.isStandIn || !told.has(entry.kind)) drafts.push(entry)
  }
  return withoutCopies(drafts)
}

/** Codex counts a turn from each prompt; with fewer prompts than turns, everything since the first is taken back. */
function rollBack(drafts: Draft[], turns: number): void {
  let left = turns
  let from = drafts.length
  for (let i = drafts.length - 1; i >= 0 && left > 0; i--) {
    if (!drafts[i]!.startsTurn || drafts[i]!.message.abandoned) continue
    from = i
    left--
  }
  for (const { message } of drafts.slice(from)) message.abandoned = true
}

function conversationOf(rollout: Rollout, drafts: Draft[]): Conversation {
  const meta = rollout.meta ?? {}
  const git = record(meta.git)
  const id = idOf(rollout)
  const parent = parentOf(rollout)
  const forkOf = string(meta.forked_from_id) ?? string(record(meta.history_base)?.thread_id) ?? string(meta.id)
  const messages = drafts.map(({ message }) => message)
  const startedAt = time(meta.timestamp) ?? messages.find(({ at }) => at !== undefined)?.at
  const title = titleOf(rollout)
  return {
    id,
    kind: kindOf(rollout, parent),
    title,
    cwds: rollout.cwds,
    ...withText({
      git_branch: git?.branch,
      git_remote: git?.repository_url,
      git_commit: git?.commit_hash,
      agent_version: meta.cli_version,
    }),
    parent: parent ? { id: parent } : undefined,
    fork_of: forkOf && forkOf !== id && forkOf !== parent ? forkOf : undefined,
    started_at: startedAt,
    ended_at: rollout.lastAt,
    messages,
    authority: 10,
  }
}

function parentOf({ meta, thread }: Rollout): string | undefined {
  const spawn = record(record(record(meta?.source)?.subagent)?.thread_spawn)
  return string(spawn?.parent_thread_id) ?? string(meta?.parent_thread_id) ?? string(thread.parent)
}

function kindOf(rollout: Rollout, parent: string | undefined): Kind {
  const { source, originator, thread_source } = rollout.meta ?? {}
  if (parent !== undefined || isSubagentThread(rollout)) return "subagent"
  const byScript = source === "exec" || source === "mcp" || /exec|sdk/i.test(string(originator) ?? "")
  return byScript || (thread_source !== undefined && thread_source !== "user") ? "automation" : "person"
}

/** In the terminal only the person names a thread; the app and the extension have names made for them. */
function titleOf(rollout: Rollout): Title | undefined {
  const name = string(rollout.thread.name) ?? rollout.name
  const source = rollout.meta?.source
  if (name) return { text: name, from: source === "cli" || source === "exec" ? "person" : "agent" }
  const title = string(rollout.thread.title)
  return title ? { text: title, from: "agent" } : undefined
}
