import { resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import { type ExportedItem, exportConnector, type Parsed, type UnitName } from "../../../src/agents/kit/connector.ts"
import { cutLongTexts, imagePart, parsedFrom, uniqueKeys } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message, Origin, Part, Role } from "../../../src/core/conversation.ts"
import { array, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"

/**
 * Reads ChatGPT's export. A conversation is a tree of nodes: each message that was edited, and each answer that was made again,
 * begins a branch. `current_node` is the end of the branch that the person last saw.
 */
export const chatgptConnector = exportConnector({
  source: "chatgpt",
  version: 1,
  parse: parseChatgpt,
  identify: ({ type, id }) => (type === HEADER ? HEADER : string(id)),
  exported: { messages: "mapping", itemOf },
})

const HEADER = "dex-conversation"

function itemOf(fields: RawRecord, nodes: RawRecord[]): ExportedItem | undefined {
  const key = string(fields.conversation_id) ?? string(fields.id)
  if (key === undefined || nodes.length === 0) return undefined
  const { current_node, ...header } = fields
  return {
    key,
    modifiedAt: time(fields.update_time) ?? time(fields.create_time),
    records: [
      // Fields whose names end in `_id` contain ids, which redaction leaves alone.
      cutLongTexts({ type: HEADER, ...header, current_node_id: current_node }),
      ...nodes.map(({ children: _, parent, ...node }) => cutLongTexts({ ...node, parent_id: parent })),
    ],
  }
}

type Node = { id: string; parent: string | undefined; message: RawRecord | undefined; children: Node[] }

function parseChatgpt(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  let header: RawRecord = {}
  const nodes = new Map<string, Node>()
  for (const entry of raw) {
    const id = string(entry.id)
    if (entry.type === HEADER) header = entry
    else if (id === undefined) unknown.add(string(entry.type) ?? "(no id)")
    else nodes.set(id, { id, parent: string(entry.parent_id), message: record(entry.message), children: [] })
  }
  const active = activeNodes(nodes, string(header.current_node_id))
  const uniqueKey = uniqueKeys()
  const messages = inOrder(nodes, active).flatMap((node) => {
    const message = node.message && messageOf(node.message, node.parent, (type) => unknown.add(type))
    if (!message || message.parts.length === 0) return []
    return [
      {
        key: uniqueKey(`${unit.key}:${node.id}`),
        ...message,
        abandoned: active.has(node) ? undefined : (true as const),
      },
    ]
  })
  const { title, create_time, update_time } = header
  return parsedFrom({ id: unit.key, title, times: [create_time, update_time], messages }, unknown)
}

/** The nodes from the current one to the root. If the current node is unknown, the newest one counts as current. */
function activeNodes(nodes: Map<string, Node>, current: string | undefined): Set<Node> {
  const sentAt = (node: Node) => time(node.message?.create_time) ?? 0
  const newest = () =>
    [...nodes.values()].reduce<Node | undefined>((a, b) => (a && sentAt(a) > sentAt(b) ? a : b), undefined)
  const active = new Set<Node>()
  for (let node = nodes.get(current ?? "") ?? newest(); node && !active.has(node); node = nodes.get(node.parent ?? ""))
    active.add(node)
  return active
}

/**
 * Returns all nodes, each after its parent, and the branch that the person followed after the others. Nodes that name each other
 * as parents, which no program writes, come last.
 */
function inOrder(nodes: Map<string, Node>, active: ReadonlySet<Node>): Node[] {
  const roots: Node[] = []
  for (const node of nodes.values()) {
    const parent = nodes.get(node.parent ?? "")
    if (parent && parent !== node) parent.children.push(node)
    else roots.push(node)
  }
  const ordered = new Set<Node>()
  const waiting = [...nodes.values()].reverse()
  waiting.push(...byActive(roots))
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    if (ordered.has(node)) continue
    ordered.add(node)
    for (const child of byActive(node.children)) waiting.push(child)
  }
  return [...ordered]

  /** In the order in which they are pushed: the last one is taken first. */
  function byActive(siblings: Node[]): Node[] {
    return [...siblings.filter((node) => active.has(node)), ...siblings.filter((node) => !active.has(node)).reverse()]
  }
}

type CountUnknown = (type: string) => void

/** `before` is the node before the message: for the answer of a tool, that is its call. */
function messageOf(
  message: RawRecord,
  before: string | undefined,
  countUnknown: CountUnknown,
): Omit<Message, "key"> | undefined {
  const author = record(message.author)
  const role = string(author?.role)
  const metadata = record(message.metadata) ?? {}
  const tool = string(author?.name)
  const at = time(message.create_time)
  const isHidden = metadata.is_visually_hidden_from_conversation === true
  if (role !== "user" && role !== "assistant" && role !== "tool" && role !== "system") {
    countUnknown(`role/${role ?? "(none)"}`)
    return undefined
  }
  const origin: Origin = isHidden || role === "system" ? "injected" : role === "user" ? "person" : "agent"
  const recipient = string(message.recipient)
  const text = contentParts(message, countUnknown)
  const model = role === "assistant" ? string(metadata.model_slug) : undefined
  if (role === "tool")
    return { role, at, parts: text.parts.length > 0 ? [toolResult(tool, before, message, text.parts)] : [] }
  if (role === "assistant" && recipient !== undefined && recipient !== "all") {
    const input = text.parts.map((part) => part.text).join("\n")
    return { role, at, model, parts: input === "" ? [] : [toolCallPart(recipient, input, string(message.id))] }
  }
  const parts = text.parts.map((part): Part => {
    if (part.type === "image") return imagePart(undefined, origin)
    if (part.type === "thinking") return { type: "thinking", text: part.text, origin: "agent" }
    return { type: "text", text: part.text, origin: text.isContext ? "injected" : origin }
  })
  return { role: role as Role, at, model, parts }
}

/** The output of the sandbox is local; the output of every other tool comes from outside: a page, a connected service. */
function toolResult(
  tool: string | undefined,
  call_id: string | undefined,
  message: RawRecord,
  parts: TextPart[],
): Part {
  const content = record(message.content)
  return resultOfCall({
    tool,
    call_id,
    output: parts.map(({ text }) => text).join("\n"),
    failed: content?.content_type === "system_error",
    action: {},
    isRemote: tool === undefined || !/^(?:python|container|bio|canmore)\b/.test(tool),
  }).part
}

type TextPart = { type: "text" | "thinking" | "image"; text: string }

/** The texts of a message. `isContext` is true for the person's settings and ChatGPT's memory, which are sent with a prompt. */
function contentParts(message: RawRecord, countUnknown: CountUnknown): { parts: TextPart[]; isContext?: boolean } {
  const content = record(message.content) ?? {}
  const texts = (...values: unknown[]) => ({ parts: values.flatMap((value) => textPart(value)) })
  switch (content.content_type) {
    case "text":
    case "multimodal_text":
      return { parts: array(content.parts).flatMap((part) => partOf(part, countUnknown)) }
    case "code":
    case "execution_output":
    case "system_error":
      return texts(content.text)
    case "thoughts":
      return {
        parts: records(content.thoughts).flatMap(({ summary, content }) =>
          textPart([string(summary), string(content)].filter((text) => text !== undefined).join("\n"), "thinking"),
        ),
      }
    case "tether_quote":
      return texts(content.title, content.url, content.text)
    case "tether_browsing_display":
      return texts(content.result, content.summary)
    case "user_editable_context":
      return { ...texts(content.user_profile, content.user_instructions), isContext: true }
    case "model_editable_context":
      return { ...texts(content.model_set_context), isContext: true }
    case "reasoning_recap": // only how long it took
      return { parts: [] }
    default:
      countUnknown(`content/${string(content.content_type) ?? "(no type)"}`)
      return { parts: [] }
  }
}

function partOf(part: unknown, countUnknown: CountUnknown): TextPart[] {
  if (typeof part === "string") return textPart(part)
  const fields = record(part)
  const type = string(fields?.content_type)
  if (type === "image_asset_pointer") return [{ type: "image", text: "" }]
  if (type === "audio_transcription") return textPart(fields!.text)
  if (type !== "audio_asset_pointer" && type !== "real_time_user_audio_video_asset_pointer")
    countUnknown(`part/${type ?? "(no type)"}`)
  return []
}

function textPart(value: unknown, type: TextPart["type"] = "text"): TextPart[] {
  const text = string(value)
  return text === undefined || text.trim() === "" ? [] : [{ type, text }]
}
