import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Message, Origin } from "../../core/conversation.ts"
import { number, parseObject, type RawRecord, string, time } from "../../core/record.ts"
import { addRequest, type Usage } from "../../core/usage.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { uniqueKeys } from "../kit/message-keys.ts"
import { spanOf } from "../kit/times.ts"
import { type Call, contentOfTurn, modelIn } from "./turns.ts"
import { windowMessages } from "./window.ts"

export function parseRooCode(rows: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  let history: RawRecord = {}
  const turns: RawRecord[] = []
  const window: RawRecord[] = []
  for (const row of rows) {
    if (row.file === "history") history = row
    else if (row.file === "window") window.push(row)
    else if (row.file === "api" || row.file === "older")
      (string(row.role) || row.type === "reasoning" ? turns : window).push(row)
    else unknown.add(`file ${String(row.file)}`)
  }
  const parent = string(history.parentTaskId)
  const asked: Origin = parent === undefined ? "person" : "agent"
  const workspace = string(history.workspace) ?? string(history.cwd)
  const count = (type: string) => unknown.add(type)
  const messages =
    turns.length > 0
      ? messagesOfTurns(turns, { id: unit.key, asked, workspace, count })
      : windowMessages(window, { id: unit.key, asked, count })
  addUsages(messages, window, history)
  const conversations = messages.length === 0 ? [] : [conversationOf(unit.key, history, parent, workspace, messages)]
  return { conversations, unknown: unknown.all() }
}

type About = { id: string; asked: Origin; workspace: string | undefined; count: (type: string) => void }

function messagesOfTurns(turns: RawRecord[], { id, asked, workspace, count }: About): Message[] {
  const keys = uniqueKeys()
  const calls = new Map<string, Call>()
  const messages: Message[] = []
  let model: string | undefined
  for (const [index, turn] of turns.entries()) {
    const at = time(turn.ts)
    model = modelIn(turn) ?? model
    const content = contentOfTurn(turn, { asked, workspace, calls, count })
    if (content.parts.length === 0) continue
    messages.push({
      key: keys(`${id}:${number(turn.ts) ?? index}:${string(turn.role) ?? "assistant"}`),
      at,
      ...content,
      model: content.role === "assistant" && model !== undefined ? model : undefined,
    })
  }
  return messages
}

/** The window says what each request took, before its answer; without it there is the sum of all of them. */
function addUsages(messages: Message[], window: RawRecord[], history: RawRecord): void {
  const answers = messages.filter(({ role }) => role === "assistant")
  if (answers.length === 0) return
  const requests = window.flatMap((one) => {
    const usage =
      one.say === "api_req_started" ? rooUsage(parseObject(string(one.text) ?? "") ?? {}, "cost") : undefined
    return usage ? [{ usage, at: time(one.ts) ?? 0 }] : []
  })
  let next = 0
  for (const { usage, at } of requests) {
    const found = answers.findIndex((answer, index) => index >= next && (answer.at === undefined || answer.at >= at))
    const answer = answers[found === -1 ? answers.length - 1 : found]!
    answer.usage = addRequest(answer.usage, usage)
    next = found === -1 ? answers.length : found + (answer.at === undefined ? 1 : 0)
  }
  const sum = requests.length === 0 ? rooUsage(history, "totalCost") : undefined
  if (sum) answers.at(-1)!.usage = sum
}

/** What was sent includes what came from a cache, and what went into it. */
function rooUsage(counted: RawRecord, money: string): Usage | undefined {
  const of = (field: string) => number(counted[field]) ?? 0
  const [sent, output, cache_read, cache_write] = [of("tokensIn"), of("tokensOut"), of("cacheReads"), of("cacheWrites")]
  if (sent + output === 0) return undefined
  const cost = of(money)
  const input = sent >= cache_read + cache_write ? sent - cache_read - cache_write : sent // older versions left them out
  return { input, output, cache_read, cache_write, cost: cost > 0 ? cost : undefined }
}

function conversationOf(
  id: string,
  history: RawRecord,
  parent: string | undefined,
  workspace: string | undefined,
  messages: Message[],
): Conversation {
  return {
    id,
    kind: parent === undefined ? "person" : "subagent",
    cwds: workspace === undefined ? [] : [workspace],
    parent: parent === undefined ? undefined : { id: parent },
    ...spanOf([
      ...messages.map(({ at }) => at),
      ...(messages.some(({ at }) => at !== undefined) ? [] : [time(history.ts)]),
    ]),
    messages,
    authority: 1,
  }
}
