import { join } from "node:path"
import { resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type {
  Connector,
  Cursor,
  Parsed,
  Reading,
  Scratch,
  Skipped,
  Unit,
  UnitName,
} from "../../../src/agents/kit/connector.ts"
import {
  type DatabaseSession,
  expectTable,
  parseJsonColumns,
  readDatabaseUnit,
  taggedRows,
  unitsOfDatabase,
} from "../../../src/agents/kit/database-units.ts"
import { fileEffect } from "../../../src/agents/kit/effects.ts"
import { columnsOf, type ForeignDatabase } from "../../../src/agents/kit/foreign-sqlite.ts"
import {
  cutLongTexts,
  imagePart,
  parsedFrom,
  uniqueKeys,
  usageFrom,
  utcTime,
} from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Effect, Message, Origin, Part } from "../../../src/core/conversation.ts"
import { number, parseObject, type RawRecord, record, records, string } from "../../../src/core/record.ts"
import { llmRoots } from "./records.ts"

/**
 * Reads the logs of `llm`. Since 0.32 a conversation is a thread of messages, which are shared by all threads that begin with them;
 * before, it was a list of responses. Both kinds of tables are in the same database, and a conversation may be in both.
 */
export const llmConnector: Connector = {
  source: "llm",
  version: 1,
  roots: llmRoots,
  discover: (root, isUnchanged, scratch) => unitsOfDatabase(join(root, "logs.db"), sessionsIn, isUnchanged, scratch),
  watched: (root) => [{ folder: root, depth: 0, files: /^logs\.db(-wal)?$/ }],
  read,
  parse: parseLlm,
  identify: (raw) => `${raw.table}:${raw.hash ?? raw.id}`,
}

function sessionsIn(db: ForeignDatabase): DatabaseSession[] {
  expectTable(db, "responses", "llm")
  const sessions = new Map<string, DatabaseSession>()
  for (const sql of [RESPONSE_STATS, ...(columnsOf(db, "turns").size > 0 ? [TURN_STATS] : [])])
    for (const { key, born, changed, count, bytes } of db.all(sql)) {
      if (key === null) continue
      const earlier = sessions.get(String(key))
      sessions.set(String(key), {
        key: String(key),
        stamp: [earlier?.stamp, changed, count].join(":"),
        bytes: (earlier?.bytes ?? 0) + (number(bytes) ?? 0),
        modifiedAt: utcTime(changed) ?? earlier?.modifiedAt ?? 0,
        bornAt: earlier?.bornAt ?? utcTime(born),
      })
    }
  return [...sessions.values()]
}

const RESPONSE_STATS = `select conversation_id as key, min(datetime_utc) as born, max(datetime_utc) as changed, count(*) as count,
  sum(octet_length(prompt) + octet_length(response)) as bytes from responses group by conversation_id`
const TURN_STATS = `select thread_id as key, min(datetime_utc) as born, max(datetime_utc) as changed, count(*) as count,
  sum(octet_length(response_json)) as bytes from turns group by thread_id`

const OF_CONVERSATION = "where response_id in (select id from responses where conversation_id = ?) order by rowid"
/** The messages of a thread. A recursive query without `all` also ends if a damaged database contains a cycle. */
const OF_THREAD = `with recursive chain(hash) as (
    select tip_message_hash from turns where thread_id = ? union
    select messages.parent_hash from messages join chain on messages.hash = chain.hash where messages.parent_hash is not null)
  select hash from chain`

function read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading {
  const rowsIn = (db: ForeignDatabase, skip: (skipped: Skipped) => void): RawRecord[] => {
    const rowsOf = (table: string, columns: readonly string[], rest: string) =>
      taggedRows(db, table, columns, rest, unit.key)
    const responses = [
      ...rowsOf("conversations", ["id", "name", "model"], "where id = ?"),
      ...parseJsonColumns(
        rowsOf("responses", RESPONSE_COLUMNS, "where conversation_id = ? order by datetime_utc, rowid"),
        ["token_details"],
        skip,
      ),
      ...rowsOf("tool_calls", ["id", "response_id", "name", "arguments", "tool_call_id"], OF_CONVERSATION),
      ...rowsOf("tool_results", ["id", "response_id", "name", "output", "tool_call_id", "exception"], OF_CONVERSATION),
      ...rowsOf("prompt_fragments", ["response_id", "fragment_id"], OF_CONVERSATION),
      ...rowsOf("prompt_attachments", ["response_id", "attachment_id"], OF_CONVERSATION),
    ]
    const thread = rowsOf("threads", ["id", "name", "forked_from"], "where id = ?")
    const messages =
      thread.length === 0
        ? []
        : [
            ...parseJsonColumns(
              rowsOf("turns", TURN_COLUMNS, "where thread_id = ? order by datetime_utc, rowid"),
              ["token_details"],
              skip,
            ),
            ...rowsOf("messages", ["hash", "role"], `where hash in (${OF_THREAD}) order by rowid`),
            ...parseJsonColumns(
              rowsOf(
                "parts",
                ["id", "message_hash", "type", "tool_name", "text", "payload"],
                `where message_hash in (${OF_THREAD}) order by message_hash, position, id`,
              ),
              ["payload"],
              skip,
            ),
          ]
    const named = new Set<unknown>()
    for (const { fragment_id, attachment_id, payload } of [...responses, ...messages]) {
      named
        .add(fragment_id)
        .add(attachment_id)
        .add(string(record(record(payload)?.attachment)?.id))
      for (const { fragment } of records(record(payload)?.text_ref)) named.add(fragment)
    }
    const isNamed = ({ id }: RawRecord) => named.has(id)
    return [
      ...responses,
      ...thread,
      ...messages,
      ...taggedRows(db, "attachments", ["id", "type", "path"], "").filter(isNamed),
      ...[...named].flatMap((id) =>
        number(id) === undefined
          ? []
          : taggedRows(db, "fragments", ["id", "source", "content"], "where id = ?", number(id)!),
      ),
    ]
  }
  return readDatabaseUnit(unit, rowsIn, cutLongTexts, after, scratch)
}

const TOKEN_COLUMNS = ["model", "resolved_model", "input_tokens", "output_tokens", "token_details", "datetime_utc"]
const RESPONSE_COLUMNS = ["id", "prompt", "system", "response", "reasoning", ...TOKEN_COLUMNS]
const TURN_COLUMNS = ["id", "parent_message_hash", "tip_message_hash", ...TOKEN_COLUMNS]

function parseLlm(rows: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const tables = new Map<string, RawRecord[]>(TABLES.map((name) => [name, []]))
  for (const row of rows) {
    const list = tables.get(String(row.table))
    if (list) list.push(row)
    else unknown.add(`table ${String(row.table)}`)
  }
  const of = (table: (typeof TABLES)[number]) => tables.get(table)!
  const byId = (table: (typeof TABLES)[number]) => new Map(of(table).map((row) => [row.id, row]))
  const [thread, conversation] = [of("threads")[0], of("conversations")[0]]
  const given: Given = { fragments: byId("fragments"), attachments: byId("attachments") }
  const turns: Turns = { begun: new Map(), ended: new Map() }
  for (const turn of of("turns")) {
    turns.begun.set(turn.parent_message_hash, turn)
    turns.ended.set(turn.tip_message_hash, turn)
  }
  // Two threads that begin with the same words share their messages. Only a fork repeats those of another conversation.
  const origin = string(thread?.forked_from) ?? unit.key
  const partsOf = Map.groupBy(of("parts"), ({ message_hash }) => message_hash)
  const byResponse = new Map(
    TABLES.map((table) => [table, Map.groupBy(of(table), ({ response_id }) => response_id)] as const),
  )
  const messages = [
    ...of("responses").flatMap((response) =>
      messagesOfResponse(response, (table) => byResponse.get(table)?.get(response.id) ?? [], given),
    ),
    ...messagesOfTurns(of("messages"), turns, of("responses").length > 0).flatMap((message) =>
      messageOfThread(message, partsOf.get(message.hash) ?? [], {
        origin,
        turns,
        given,
        unknown: (type) => unknown.add(type),
      }),
    ),
  ]
  const uniqueKey = uniqueKeys()
  for (const message of messages) message.key = uniqueKey(message.key)
  const title = string(thread?.name) ?? string(conversation?.name)
  // llm names a conversation after its first prompt.
  const isPrompt = messages.some(
    ({ role, parts }) => role === "user" && parts.some((part) => part.text.startsWith(title ?? "\0")),
  )
  const fields = { id: unit.key, title: isPrompt ? undefined : title, fork_of: thread?.forked_from, messages }
  return parsedFrom(fields, unknown)
}

/** If an older conversation is continued, its thread begins with copies of what the responses contain. They have no turn. */
function messagesOfTurns(messages: RawRecord[], { begun }: Turns, isContinued: boolean): RawRecord[] {
  return isContinued
    ? messages.slice(
        Math.max(
          0,
          messages.findIndex(({ hash }) => begun.has(hash)),
        ),
      )
    : messages
}

const TABLES = [
  ...(["conversations", "responses", "tool_calls", "tool_results", "prompt_fragments", "prompt_attachments"] as const),
  ...(["threads", "turns", "messages", "parts", "fragments", "attachments"] as const),
] as const

/** Files that were given with a prompt: as text, or as pictures. */
type Given = { fragments: Map<unknown, RawRecord>; attachments: Map<unknown, RawRecord> }
type Turns = { begun: Map<unknown, RawRecord>; ended: Map<unknown, RawRecord> }
type Content = { parts: Part[]; effects: Effect[] }

function addFragment({ parts, effects }: Content, fragment: RawRecord | undefined): void {
  const source = string(fragment?.source)
  if (string(fragment?.content)) parts.push({ type: "text", text: string(fragment!.content)!, origin: "injected" })
  if (source && !/^[a-z][a-z0-9+.-]+:/i.test(source)) effects.push(fileEffect(source, "mentioned"))
}

function addAttachment({ parts, effects }: Content, attachment: RawRecord | undefined): void {
  parts.push(imagePart({ media_type: attachment?.type, sha256: attachment?.id }, "person"))
  if (string(attachment?.path)) effects.push(fileEffect(string(attachment!.path)!, "mentioned"))
}

function addResult({ parts, effects }: Content, { name, tool_call_id, output, exception }: RawRecord): void {
  const text = string(output) ?? (output === undefined || output === null ? "" : JSON.stringify(output))
  const call = {
    tool: string(name),
    call_id: string(tool_call_id),
    output: text,
    failed: Boolean(exception),
    action: {},
  }
  const result = resultOfCall(call)
  parts.push(result.part)
  effects.push(...result.effects)
}

function messageFrom(
  key: string,
  role: Message["role"],
  { parts, effects }: Content,
  more: Partial<Message>,
): Message[] {
  return parts.length === 0 ? [] : [{ key, role, parts, effects: effects.length > 0 ? effects : undefined, ...more }]
}

function messageOfThread(
  message: RawRecord,
  parts: RawRecord[],
  { origin, turns, given, unknown }: { origin: string; turns: Turns; given: Given; unknown: (type: string) => void },
): Message[] {
  const content: Content = { parts: [], effects: [] }
  const isAnswer = message.role === "assistant"
  const words: Origin = isAnswer ? "agent" : message.role === "user" ? "person" : "injected"
  for (const { type, text, tool_name, payload } of parts) {
    const fields = record(payload) ?? {}
    if (type === "text") {
      for (const { fragment, literal } of records(fields.text_ref)) {
        if (fragment !== undefined) addFragment(content, given.fragments.get(fragment))
        else if (string(literal)?.trim())
          content.parts.push({ type: "text", text: string(literal)!.trim(), origin: words })
      }
      if (string(text)) content.parts.push({ type: "text", text: string(text)!, origin: words })
    } else if (type === "reasoning") {
      const thought = string(text) ?? string(fields.text)
      if (thought) content.parts.push({ type: "thinking", text: thought, origin: "agent" })
    } else if (type === "tool_call")
      content.parts.push(
        toolCallPart(string(tool_name) ?? string(fields.name), fields.arguments, string(fields.tool_call_id)),
      )
    else if (type === "tool_result") addResult(content, { name: tool_name, ...fields })
    else if (type === "attachment") addAttachment(content, given.attachments.get(record(fields.attachment)?.id))
    else unknown(`part ${String(type)}`)
  }
  const turn = turns.ended.get(message.hash)
  const role = isAnswer ? "assistant" : message.role === "tool" ? "tool" : message.role === "user" ? "user" : "system"
  return messageFrom(`${origin}:${message.hash}`, role, content, {
    at: utcTime((turn ?? turns.begun.get(message.hash))?.datetime_utc),
    ...(isAnswer && turn ? modelAndUsage(turn) : {}),
  })
}

/** Parses a response of the older tables: what was sent, and the answer. `ofResponse` returns its rows in another table. */
function messagesOfResponse(
  response: RawRecord,
  ofResponse: (table: (typeof TABLES)[number]) => RawRecord[],
  given: Given,
): Message[] {
  const id = String(response.id)
  const at = utcTime(response.datetime_utc)
  const returned: Content = { parts: [], effects: [] }
  const sent: Content = { parts: [], effects: [] }
  const answer: Content = { parts: [], effects: [] }
  for (const result of ofResponse("tool_results")) addResult(returned, result)
  for (const { fragment_id } of ofResponse("prompt_fragments")) addFragment(sent, given.fragments.get(fragment_id))
  if (string(response.prompt)) sent.parts.push({ type: "text", text: string(response.prompt)!, origin: "person" })
  for (const { attachment_id } of ofResponse("prompt_attachments"))
    addAttachment(sent, given.attachments.get(attachment_id))
  if (string(response.reasoning))
    answer.parts.push({ type: "thinking", text: string(response.reasoning)!, origin: "agent" })
  if (string(response.response)) answer.parts.push({ type: "text", text: string(response.response)!, origin: "agent" })
  for (const { name, arguments: args, tool_call_id } of ofResponse("tool_calls"))
    answer.parts.push(toolCallPart(string(name), parseObject(string(args) ?? "") ?? args, string(tool_call_id)))
  return [
    ...messageFrom(`${id}:returned`, "tool", returned, { at }),
    ...messageFrom(`${id}:sent`, "user", sent, { at }),
    ...messageFrom(id, "assistant", answer, { at, ...modelAndUsage(response) }),
  ]
}

/** The details are the provider's own: OpenAI counts what came from the cache as input, Anthropic does not. */
function modelAndUsage(turn: RawRecord): Pick<Message, "model" | "usage"> {
  const details = record(turn.token_details)
  const cached = number(record(details?.prompt_tokens_details)?.cached_tokens)
  const counted =
    cached === undefined
      ? {
          input: turn.input_tokens,
          cache_read: details?.cache_read_input_tokens,
          cache_write: details?.cache_creation_input_tokens,
        }
      : { prompt: turn.input_tokens, cache_read: cached }
  const reasoning = record(details?.completion_tokens_details)?.reasoning_tokens
  return {
    model: string(turn.resolved_model) ?? string(turn.model),
    usage: usageFrom({ ...counted, output: turn.output_tokens, reasoning }),
  }
}
