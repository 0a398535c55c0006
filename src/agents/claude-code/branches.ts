import { array, isRecord, type RawRecord, record, string, time } from "../../core/record.ts"
import { contentText } from "./content.ts"

/**
 * Finds the uuids of abandoned records: answers that Claude Code withdrew, and branches that the person left by going back to an
 * earlier prompt and typing another one. The parentUuid chain also forks at parallel tool calls, hooks and progress records. So a
 * branch counts as abandoned only if two prompts follow the same record and the conversation continued from the later one. If a
 * link of the chain is missing, no branch there is marked, because a false positive is worse than a miss.
 */
export function abandonedUuids(records: readonly RawRecord[]): Set<string> {
  const nodes = new Map<string, Node>()
  const children = new Map<string, string[]>()
  let leaf: string | undefined
  let resumedLeaf: string | undefined
  for (const [index, raw] of records.entries()) {
    if (raw.type === "last-prompt") resumedLeaf = string(raw.leafUuid)
    const uuid = string(raw.uuid)
    if (uuid === undefined) continue
    const parent = string(raw.parentUuid) ?? string(raw.logicalParentUuid)
    const kind = kindOf(raw)
    nodes.set(uuid, { parent, kind, index, raw })
    if (parent !== undefined) {
      const siblings = children.get(parent)
      if (siblings) siblings.push(uuid)
      else children.set(parent, [uuid])
    }
    if (kind !== "link") leaf = uuid
  }

  const nextActive = new Map<string, string | undefined>()
  for (const end of [leaf, resumedLeaf]) addPathToRoot(nodes, end, nextActive)

  const abandoned = retractedUuids(records)
  for (const [uuid, node] of nodes) {
    if (node.kind !== "prompt" || nextActive.has(uuid) || !isTyped(node.raw)) continue
    const fork = forkAbove(nodes, node, nextActive)
    const continuation = fork === undefined ? undefined : firstMessageBelow(nodes, fork, nextActive)
    if (continuation?.kind === "prompt" && continuation.index > node.index)
      addBranch(uuid, children, nextActive, abandoned)
  }
  return abandoned
}

type Node = { parent: string | undefined; kind: "prompt" | "message" | "link"; index: number; raw: RawRecord }
type Nodes = Map<string, Node>
/** The records on the path from a leaf to the root, each with its successor on that path. */
type ActivePath = Map<string, string | undefined>

function kindOf(raw: RawRecord): Node["kind"] {
  if (raw.type === "assistant") return "message"
  if (raw.type !== "user") return "link"
  const content = record(raw.message)?.content
  return array(content).some((block) => isRecord(block) && block.type === "tool_result") ? "message" : "prompt"
}

/**
 * Whether the person typed this prompt. A command such as /exit leaves a record that begins with a tag. The next prompt does not
 * follow that record, although nobody went back.
 */
function isTyped(raw: RawRecord): boolean {
  if (raw.isMeta === true || raw.isCompactSummary === true) return false
  const content = record(raw.message)?.content
  const text = typeof content === "string" ? content : string(record(array(content)[0])?.text)
  return text === undefined || !text.trimStart().startsWith("<")
}

function addPathToRoot(nodes: Nodes, from: string | undefined, active: ActivePath): void {
  let successor: string | undefined
  for (let uuid = from; uuid !== undefined && !active.has(uuid); uuid = nodes.get(uuid)?.parent) {
    if (!nodes.has(uuid)) return
    active.set(uuid, successor)
    successor = uuid
  }
}

function forkAbove(nodes: Nodes, node: Node, active: ActivePath): string | undefined {
  const visited = new Set<string>()
  for (let uuid = node.parent; uuid !== undefined && !visited.has(uuid); uuid = nodes.get(uuid)?.parent) {
    if (active.has(uuid)) return uuid
    if (nodes.get(uuid)?.kind !== "link") return undefined
    visited.add(uuid)
  }
  return undefined
}

function firstMessageBelow(nodes: Nodes, fork: string, active: ActivePath): Node | undefined {
  for (let uuid = active.get(fork); uuid !== undefined; uuid = active.get(uuid)) {
    const node = nodes.get(uuid)
    if (node && node.kind !== "link") return node
  }
  return undefined
}

function addBranch(root: string, children: Map<string, string[]>, active: ActivePath, abandoned: Set<string>): void {
  const pending = [root]
  for (let uuid = pending.pop(); uuid !== undefined; uuid = pending.pop()) {
    if (active.has(uuid) || abandoned.has(uuid)) continue
    abandoned.add(uuid)
    for (const child of children.get(uuid) ?? []) pending.push(child)
  }
}

/** Finds the uuids of answers that Claude Code withdrew, because the model refused or another model's answer replaced them. */
function retractedUuids(records: readonly RawRecord[]): Set<string> {
  const uuids = new Set<string>()
  for (const raw of records) {
    for (const uuid of array(raw.supersedesUuids)) if (typeof uuid === "string") uuids.add(uuid)
    for (const uuid of array(raw.retractedMessageUuids)) if (typeof uuid === "string") uuids.add(uuid)
  }
  return uuids
}

/** The number of later prompts that are searched for a queued text, because several queued texts may be sent as one prompt. */
const MAX_LATER_PROMPTS = 50
/** An attachment and a user record with the same text are one prompt if their times differ by less than this. */
const SAME_PROMPT_MS = 10_000

/**
 * Finds records with a prompt that was typed while the agent worked and that has no user record: `queue-operation` records (up to
 * 2.1.x the only trace of a prompt that was picked up mid-turn) and `queued_command` attachments. Prompts that the person took
 * back into the input line (`popAll`) were not sent, and slash commands are recorded elsewhere.
 */
export function queuedOnlyRecords(records: readonly RawRecord[]): Set<RawRecord> {
  const prompts = promptsIn(records)
  const queuedOnly = new Set<RawRecord>()
  let waiting: RawRecord[] = []
  let nextPrompt = 0
  for (const [index, raw] of records.entries()) {
    while (nextPrompt < prompts.list.length && prompts.list[nextPrompt]!.index < index) nextPrompt++
    if (raw.type === "attachment" && record(raw.attachment)?.type === "queued_command") {
      if (!hasPromptNearby(raw, prompts)) queuedOnly.add(raw)
    } else if (raw.type === "queue-operation" && raw.operation === "popAll") {
      for (const withdrawn of waiting) queuedOnly.delete(withdrawn)
      waiting = []
    } else if (raw.type === "queue-operation" && raw.operation === "enqueue") {
      const text = contentText(raw.content).trim()
      if (text === "" || /^\/[\w:-]+(\s|$)/.test(text) || hasLaterPrompt(text, index, nextPrompt, prompts)) continue
      queuedOnly.add(raw)
      waiting.push(raw)
    }
  }
  return queuedOnly
}

/** Returns the prompt of a queued_command, which is a string or a list of blocks. */
export function queuedText(attachment: RawRecord): string {
  return contentText(attachment.prompt)
}

type Prompt = { index: number; text: string; raw: RawRecord }
type Prompts = { list: Prompt[]; byText: Map<string, Prompt[]>; uuids: Set<string> }

function promptsIn(records: readonly RawRecord[]): Prompts {
  const prompts: Prompts = { list: [], byText: new Map(), uuids: new Set() }
  for (const [index, raw] of records.entries()) {
    const attachment = raw.type === "attachment" ? record(raw.attachment) : undefined
    const isQueued = attachment?.type === "queued_command"
    if (raw.type !== "user" && !isQueued) continue
    const text = (isQueued ? queuedText(attachment) : textWithoutResults(record(raw.message)?.content)).trim()
    if (text === "") continue
    const prompt = { index, text, raw }
    prompts.list.push(prompt)
    const equalPrompts = prompts.byText.get(text)
    if (equalPrompts) equalPrompts.push(prompt)
    else prompts.byText.set(text, [prompt])
    const uuid = string(raw.uuid)
    if (!isQueued && uuid !== undefined) prompts.uuids.add(uuid)
  }
  return prompts
}

/** Returns the text of a record without its tool results. */
function textWithoutResults(content: unknown): string {
  if (!Array.isArray(content)) return contentText(content)
  return contentText(content.filter((block) => record(block)?.type !== "tool_result"))
}

/** Whether a later prompt contains the queued text. Each prompt matches one queued text, so typing "go on" twice counts twice. */
function hasLaterPrompt(text: string, index: number, next: number, prompts: Prompts): boolean {
  const equalPrompts = prompts.byText.get(text)
  const position = equalPrompts ? equalPrompts.findIndex((prompt) => prompt.index > index) : -1
  if (equalPrompts && position !== -1) {
    equalPrompts.splice(position, 1)
    return true
  }
  const containsQueued = (prompt: Prompt) => prompt.text !== text && `\n${prompt.text}\n`.includes(`\n${text}\n`)
  return prompts.list.slice(next, next + MAX_LATER_PROMPTS).some(containsQueued)
}

function hasPromptNearby(raw: RawRecord, prompts: Prompts): boolean {
  const attachment = record(raw.attachment)!
  const source = string(attachment.source_uuid)
  if (source !== undefined && prompts.uuids.has(source)) return true
  const at = time(raw.timestamp)
  const equalPrompts = prompts.byText.get(queuedText(attachment).trim()) ?? []
  return equalPrompts.some((prompt) => {
    const promptTime = prompt.raw.type === "user" ? time(prompt.raw.timestamp) : undefined
    return at !== undefined && promptTime !== undefined && Math.abs(promptTime - at) < SAME_PROMPT_MS
  })
}
