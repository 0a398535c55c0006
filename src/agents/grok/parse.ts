import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Message, Title } from "../../core/conversation.ts"
import { type RawRecord, record, string } from "../../core/record.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { uniqueKeys } from "../kit/message-keys.ts"
import { spanOf } from "../kit/times.ts"
import { readGiven } from "./given.ts"
import { type GrokLog, readUpdate } from "./updates.ts"

export function parseGrok(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const lines = [...raw]
  const facts = lines.findLast(({ type }) => type === "dex-session") ?? {}
  const log: GrokLog = {
    messages: [],
    unknown: createCounts(),
    keyFor: uniqueKeys(),
    session: unit.key,
    calls: new Map(),
    isSubagent: facts.kind === "subagent" || string(facts.parent) !== undefined,
  }
  for (const line of lines) {
    const params = record(line.params)
    if (params) readUpdate(log, record(params.update) ?? {}, record(params._meta) ?? {}, line)
    else if (line.type !== "dex-session") readGiven(log, line)
  }
  return { conversations: log.messages.length === 0 ? [] : [conversationOf(log, facts)], unknown: log.unknown.all() }
}

function conversationOf({ session, messages, isSubagent }: GrokLog, facts: RawRecord): Conversation {
  const [cwd, branch, commit] = [string(facts.cwd), string(facts.branch), string(facts.commit)]
  const [remote, parent] = [string(facts.remote), string(facts.parent)]
  const title = titleOf(facts, messages)
  return {
    id: session,
    kind: isSubagent ? "subagent" : "person",
    title,
    cwds: cwd === undefined ? [] : [cwd],
    git_branch: branch,
    git_remote: remote,
    git_commit: commit,
    parent: parent === undefined ? undefined : { id: parent },
    ...spanOf(messages.map(({ at }) => at)),
    messages,
    authority: 1,
  }
}

/** Until a title is made, the session is called like its first prompt. */
function titleOf(facts: RawRecord, messages: Message[]): Title | undefined {
  const text = string(facts.description) ?? string(facts.title)
  const first = messages.find(({ role, parts }) => role === "user" && parts[0]?.origin !== "injected")?.parts[0]?.text
  if (text === undefined || first?.startsWith(text.slice(0, 40))) return undefined
  return { text, from: "agent" }
}
