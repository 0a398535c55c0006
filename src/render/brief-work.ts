import { commandKinds } from "../core/command.ts"
import type { Effect, Message, Part } from "../core/conversation.ts"

/** A message as a brief reads it. */
export type BriefMessage = Pick<Message, "role" | "at" | "parts" | "effects"> & {
  number: number
  abandoned?: boolean
  superseded?: boolean
}

/** Quoted words, and the number of their message. */
export type Quote = { number: number; text: string }
/** `by` is "agent" for a subagent's task, and for an approved plan that was started in a new conversation. */
export type BriefPrompt = Quote & { by: "person" | "agent"; refused: boolean }
export type FileWork = { number: number; path: string; added: number; removed: number }
export type WorkProduct = Quote & { kind: "commit" | "pull_request"; name: string; branch?: string }

/** A tool call with its result. */
export type BriefCall = {
  number: number
  tool: string
  /** The tool's input as it was written. `input` is the same, parsed; empty if it is not JSON. */
  text: string
  input: Record<string, unknown>
  call_id?: string
  result?: Part & { type: "tool_result"; number: number }
}

/** A command that did more than read, and its outcome. */
export type WorkCommand = {
  number: number
  command: string
  /** `unknown` if a pipe succeeded, which says nothing about its first program. */
  outcome: "succeeded" | "failed" | "unknown"
  exit_status?: number
  error?: string
  kinds: string[]
}

/** The work in a conversation, in the order of the messages. Files are in the order in which they were last touched. */
type ConversationWork = {
  /** The position of each message. A message's number identifies it, but does not say when it was written. */
  places: Map<number, number>
  prompts: BriefPrompt[]
  /** The agent's texts. */
  spoken: Quote[]
  calls: BriefCall[]
  commands: WorkCommand[]
  edited: Map<string, FileWork>
  read: Map<string, Quote>
  made: WorkProduct[]
  /** The last message of each kind. */
  last: { message?: number; assistant?: number; commit?: number; summary?: Quote }
}

export function workOf(messages: BriefMessage[], roots: string[]): ConversationWork {
  const work: ConversationWork = {
    places: new Map(),
    prompts: [],
    spoken: [],
    calls: [],
    commands: [],
    edited: new Map(),
    read: new Map(),
    made: [],
    last: {},
  }
  const callsById = new Map<string, BriefCall>()
  const promptTexts = new Set<string>()
  for (const { number, role, parts, effects, abandoned, superseded } of messages) {
    if (abandoned || superseded) continue
    work.places.set(number, work.places.size)
    work.last.message = number
    if (role === "assistant") work.last.assistant = number
    for (const part of parts) addPart(work, callsById, number, part)
    for (const effect of effects ?? []) addEffect(work, number, effect, roots)
    if (role === "assistant") {
      const text = wordsOf(parts, "agent")
      if (text !== "") work.spoken.push({ number, text })
    } else if (role === "user") {
      const prompt = promptIn(number, parts)
      // An agent's prompt that is repeated, such as a plan, counts once.
      if (prompt && (prompt.by === "person" || !promptTexts.has(prompt.text))) work.prompts.push(prompt)
      if (prompt) promptTexts.add(prompt.text)
    }
  }
  return work
}

function addPart(work: ConversationWork, callsById: Map<string, BriefCall>, number: number, part: Part): void {
  if (part.type === "tool_call") {
    const { tool, text, call_id } = part
    const call: BriefCall = { number, tool, text, input: callInput(text), call_id }
    work.calls.push(call)
    if (call_id !== undefined) callsById.set(call_id, call)
  } else if (part.type === "tool_result" && part.call_id !== undefined) {
    const call = callsById.get(part.call_id)
    if (call) call.result ??= { ...part, number }
  } else if (part.type === "summary") work.last.summary = { number, text: part.text }
}

/** A tool's input, parsed. Empty if the text is not a JSON object. */
export function callInput(text: string): Record<string, unknown> {
  if (!text.trimStart().startsWith("{")) return {}
  try {
    return JSON.parse(text)
  } catch {
    return {} // a freeform input that begins with a brace
  }
}

function addEffect(work: ConversationWork, number: number, effect: Effect, roots: string[]): void {
  if (effect.type === "file") addFile(work, number, effect, withoutRootFolder(effect.path, roots))
  else if (effect.type === "command") addCommand(work, number, effect)
  else if (effect.type === "pull_request") work.made.push({ kind: "pull_request", number, name: effect.url, text: "" })
  else if (effect.type === "commit") {
    const { hash, subject, branch } = effect
    work.made.push({ kind: "commit", number, name: hash, text: subject, branch })
    work.last.commit = number
  }
}

function addFile(work: ConversationWork, number: number, effect: Effect & { type: "file" }, path: string): void {
  if (effect.action === "read") {
    work.read.delete(path)
    work.read.set(path, { number, text: path })
  } else if (effect.action === "edited") {
    const { added, removed } = work.edited.get(path) ?? { added: 0, removed: 0 }
    work.edited.delete(path)
    work.edited.set(path, {
      number,
      path,
      added: added + (effect.added ?? 0),
      removed: removed + (effect.removed ?? 0),
    })
  }
}

function addCommand(work: ConversationWork, number: number, effect: Effect & { type: "command" }): void {
  const { command, failed, exit_status, error } = effect
  if (failed === undefined) return
  const { kinds, piped } = commandKinds(command)
  if (kinds.length === 0) return
  work.commands.push({
    number,
    command,
    outcome: failed ? "failed" : piped ? "unknown" : "succeeded",
    exit_status,
    error: failed && error && !/^Exit code \d+$/.test(error) ? error : undefined,
    kinds,
  })
}

function withoutRootFolder(path: string, roots: string[]): string {
  const root = roots.find((candidate) => path.startsWith(`${candidate}/`))
  return root === undefined ? path : path.slice(root.length + 1)
}

/** The prompt in a user's message. Undefined if it is empty, or a command that only controls the agent's interface. */
function promptIn(number: number, parts: Part[]): BriefPrompt | undefined {
  const by = parts.some((part) => part.type === "text" && part.origin === "person") ? "person" : "agent"
  const words = wordsOf(parts, by)
  const text = by === "agent" ? withoutAddedInstructions(words) : words
  if (text === "" || INTERFACE_COMMAND.test(text) || text.startsWith("!")) return undefined
  return { number, text, by, refused: parts.some(isRefusal) }
}

const INTERFACE_COMMAND =
  /^\/(?:exit|quit|clear|new|ide|mcp|skills|help|model|login|logout|config|cost|usage|context|compact|resume|release-notes|status|theme|vim|hooks|agents|memory|permissions|plugin|doctor|terminal-setup|rewind)\b[^\n]{0,40}$/

/** True if the person stopped a tool; they may have given a reason. */
function isRefusal(part: Part): boolean {
  return part.type === "tool_result" && part.is_error && /^The user doesn't want to /.test(part.text)
}

function wordsOf(parts: Part[], origin: "person" | "agent"): string {
  return parts
    .filter((part) => part.type === "text" && part.origin === origin)
    .map((part) => part.text)
    .join("\n\n")
    .trim()
}

/** Removes the instructions that Claude Code itself adds after a text that one agent wrote for another. */
export function withoutAddedInstructions(text: string): string {
  const instructions =
    /^[ \t]*(?:If you need specific details from before|Please continue the conversation from)/m.exec(text)
  return text.slice(0, instructions?.index).trim()
}
