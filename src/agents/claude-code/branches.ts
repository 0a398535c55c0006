import type { RawRecord } from "../../core/record.ts"
import { array, isRecord, record, string } from "../../core/record.ts"

/**
 * The uuids of records on branches that the person left: went back to an earlier prompt and typed another one.
 *
 * Forks of the parentUuid chain are ordinary: parallel tool calls, hooks and progress make them. A branch counts as left
 * only where two prompts answer the same record and the conversation went on from the later one. Where a link of the
 * chain is missing nothing is concluded: to call a living branch abandoned is worse than to miss one.
 */
export function abandonedUuids(records: readonly RawRecord[]): Set<string> {
  const nodes = new Map<string, Node>()
  const children = new Map<string, string[]>()
  let leaf: string | undefined
  let resumedAt: string | undefined
  for (const [index, raw] of records.entries()) {
    if (raw.type === "last-prompt") resumedAt = string(raw.leafUuid)
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
  for (const end of [leaf, resumedAt]) climb(nodes, end, nextActive)

  const abandoned = retracted(records)
  for (const [uuid, node] of nodes) {
    if (node.kind !== "prompt" || nextActive.has(uuid) || !isTyped(node.raw)) continue
    const fork = forkAbove(nodes, node, nextActive)
    const rival = fork === undefined ? undefined : firstMessageBelow(nodes, fork, nextActive)
    if (rival?.kind === "prompt" && rival.index > node.index) addBranch(uuid, children, nextActive, abandoned)
  }
  return abandoned
}

type Node = { parent: string | undefined; kind: "prompt" | "message" | "link"; index: number; raw: RawRecord }
type Nodes = Map<string, Node>
/** The records on the way from a leaf to the root, each with the one that follows it on that way. */
type Active = Map<string, string | undefined>

function kindOf(raw: RawRecord): Node["kind"] {
  if (raw.type === "assistant") return "message"
  if (raw.type !== "user") return "link"
  const content = record(raw.message)?.content
  return array(content).some((block) => isRecord(block) && block.type === "tool_result") ? "message" : "prompt"
}

/** Commands such as /exit leave records that the next prompt does not hang on, without anyone going back. */
function isTyped(raw: RawRecord): boolean {
  if (raw.isMeta === true || raw.isCompactSummary === true) return false
  const content = record(raw.message)?.content
  const text = typeof content === "string" ? content : string(record(array(content)[0])?.text)
  return text === undefined || !text.trimStart().startsWith("<")
}

function climb(nodes: Nodes, from: string | undefined, active: Active): void {
  let below: string | undefined
  for (let uuid = from; uuid !== undefined && !active.has(uuid); uuid = nodes.get(uuid)?.parent) {
    if (!nodes.has(uuid)) return
    active.set(uuid, below)
    below = uuid
  }
}

function forkAbove(nodes: Nodes, node: Node, active: Active): string | undefined {
  const seen = new Set<string>()
  for (let uuid = node.parent; uuid !== undefined && !seen.has(uuid); uuid = nodes.get(uuid)?.parent) {
    if (active.has(uuid)) return uuid
    if (nodes.get(uuid)?.kind !== "link") return undefined
    seen.add(uuid)
  }
  return undefined
}

function firstMessageBelow(nodes: Nodes, fork: string, active: Active): Node | undefined {
  for (let uuid = active.get(fork); uuid !== undefined; uuid = active.get(uuid)) {
    const node = nodes.get(uuid)
    if (node && node.kind !== "link") return node
  }
  return undefined
}

function addBranch(root: string, children: Map<string, string[]>, active: Active, abandoned: Set<string>): void {
  const open = [root]
  for (let uuid = open.pop(); uuid !== undefined; uuid = open.pop()) {
    if (active.has(uuid) || abandoned.has(uuid)) continue
    abandoned.add(uuid)
    for (const child of children.get(uuid) ?? []) open.push(child)
  }
}

/** Answers that Claude Code itself took back: refused or replaced by another model's. */
function retracted(records: readonly RawRecord[]): Set<string> {
  const uuids = new Set<string>()
  for (const raw of records) {
    for (const uuid of array(raw.supersedesUuids)) if (typeof uuid === "string") uuids.add(uuid)
    for (const uuid of array(raw.retractedMessageUuids)) if (typeof uuid === "string") uuids.add(uuid)
  }
  return uuids
}
