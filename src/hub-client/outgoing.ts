import { createHash } from "node:crypto"
import { posix } from "node:path"
import type { Effect, Part } from "../core/conversation.ts"
import { messageText } from "../core/format.ts"
import { foldPath } from "../core/path-key.ts"
import { estimateTokens } from "../core/tokens.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import type { ConversationRow, MessageVersion, StoredMessage } from "../store/history/store.ts"
import { maskPlaces, type PlacePatterns, type RemovedText, redactForSharing } from "./for-others.ts"
import { MAX_CHUNK_PLAIN, type WireHead, type WireMessage } from "./wire.ts"

/** The parts of a conversation that can be shared. */
export const SHAREABLE = ["said", "called", "returned", "thinking", "images"] as const
export type Shareable = (typeof SHAREABLE)[number]
export const DEFAULT_SHARED: readonly Shareable[] = ["said", "called", "returned"]

/** Increase this whenever the same message would be sent differently than before. */
export const OUTGOING_VERSION = 1

export type OutgoingRules = {
  what: readonly Shareable[]
  /** The folders in which the project is or was. */
  folders: readonly string[]
  home: string
  platform: NodeJS.Platform
  places: PlacePatterns
}

export type OutgoingConversation = {
  head: WireHead
  messages: WireMessage[]
  taken_out: RemovedText[]
  /** The number of parts and effects that are not sent, by kind. */
  left_out: Record<string, number>
}

/** Builds exactly what is sent to a hub for a conversation. The same input gives the same bytes. */
export function createOutgoing(
  row: ConversationRow,
  stored: readonly StoredMessage[],
  versions: readonly MessageVersion[],
  rules: OutgoingRules,
): OutgoingConversation {
  const leftOut: Record<string, number> = {}
  const countLeftOut = (what: string) => {
    leftOut[what] = (leftOut[what] ?? 0) + 1
  }
  const selectedMessages = stored.map((message) => selectShared(message, rules, countLeftOut))
  const paths = selectedMessages.map(pathsOf)
  const shared = {
    title: rules.what.includes("said") ? recordedTitleOf(row) : undefined,
    git_branch: row.git_branch,
    agent_version: row.agent_version,
    models: row.models,
    messages: selectedMessages,
  }
  const { value, taken_out } = redactForSharing(shared, rules.places)
  // The paths are relative to the project, and reveal nothing about this machine. They are restored after redaction, because it
  // also masks a folder of the project that has the user's name.
  for (const [i, message] of value.messages.entries()) restorePaths(message, paths[i]!)
  value.messages = value.messages.map((message) => shortenTexts(message, countLeftOut))
  const versionOf = new Map(versions.map(({ number, version }) => [number, version]))
  const messages = value.messages.map((message) => ({
    ...message,
    version: versionFor(versionOf.get(message.number) ?? 0, message),
  }))
  const { messages: _, ...head } = value
  return { head: headOf(row, head, messages, rules.places), messages, taken_out, left_out: leftOut }
}

/** The title without the one that the person gave it in dex, which stays on this machine. */
function recordedTitleOf({ title, recorded_title }: ConversationRow) {
  return recorded_title === undefined ? title : (recorded_title ?? undefined)
}

/**
 * The version of a message on the hub. It grows with the local version, and also changes if only the shared form changes (newer
 * rules, another choice of parts). An unchanged message keeps its version, so that its chunk is not sent again.
 */
function versionFor(local: number, message: StoredMessage): number {
  return local * CONTENT_VERSIONS + Number.parseInt(fingerprint(JSON.stringify(message)).slice(0, 4), 16)
}
/** The number of versions on the hub for each local version: one for each value of the fingerprint's first four digits. */
const CONTENT_VERSIONS = 1 << 16

/** The conversation's id on a hub. An id that reveals a folder or user name is replaced. */
export function sharedId(id: string, places: PlacePatterns): string {
  return maskPlaces(id, places).text === id ? id : `dex-${fingerprint(id).slice(0, 32)}`
}

function headOf(
  row: ConversationRow,
  shared: Pick<WireHead, "title" | "git_branch" | "agent_version" | "models">,
  messages: WireMessage[],
  places: PlacePatterns,
): WireHead {
  const current = messages.filter(({ superseded }) => !superseded)
  const shownMessages = current.length > 0 ? current : messages
  const { parent } = row
  return {
    source: row.ref.source,
    id: sharedId(row.ref.id, places),
    kind: row.kind,
    ...shared,
    parent: parent && { ...parent, id: sharedId(parent.id, places) },
    fork_of: row.fork_of === undefined ? undefined : sharedId(row.fork_of, places),
    started_at: row.started_at,
    ended_at: row.ended_at,
    usage: row.usage,
    message_count: row.message_count,
    superseded: row.superseded,
    copied_count: row.copied_count,
    estimated_tokens: shownMessages.reduce((sum, message) => sum + estimateTokens(messageText(message, "stripped")), 0),
    text_bytes: messages.reduce((sum, message) => sum + textBytes(message), 0),
    redaction_version: REDACTION_VERSION,
  }
}

function textBytes({ parts }: WireMessage): number {
  return parts.reduce((sum, part) => sum + Buffer.byteLength(part.text), 0)
}

/** A copy of the message with only the chosen parts, and only with paths inside the project. */
function selectShared(
  message: StoredMessage,
  rules: OutgoingRules,
  countLeftOut: (what: string) => void,
): StoredMessage {
  const parts = message.parts.flatMap((part) => {
    const kind = part.origin === "injected" ? undefined : kindOf(part)
    if (kind !== undefined && rules.what.includes(kind)) return [withHunksInProject(part, rules, countLeftOut)]
    countLeftOut(kind ?? "injected")
    return []
  })
  const effects = message.effects.flatMap((effect) => {
    const shared = sharedEffect(effect, rules)
    if (!shared) countLeftOut(effect.type === "file" ? "files elsewhere" : "effects")
    return shared ? [shared] : []
  })
  return { ...message, parts, effects }
}

function kindOf(part: Part): Shareable | undefined {
  switch (part.type) {
    case "text":
    case "summary":
      return "said"
    case "tool_call":
      return "called"
    case "tool_result":
      return "returned"
    case "thinking":
      return "thinking"
    case "image":
      return "images"
    default:
      return undefined // written by a newer dex, so nobody has agreed to share it
  }
}

function withHunksInProject(part: Part, rules: OutgoingRules, countLeftOut: (what: string) => void): Part {
  if (part.type !== "tool_result" || !part.hunks) return part
  const hunks = part.hunks.flatMap((hunk) => {
    const path = pathInProject(hunk.path, rules.folders, rules)
    if (path === undefined) countLeftOut("changes elsewhere")
    return path === undefined ? [] : [{ ...hunk, path }]
  })
  const { hunks: _, ...rest } = part
  return hunks.length === 0 ? rest : { ...rest, hunks }
}

function sharedEffect(effect: Effect, rules: OutgoingRules): Effect | undefined {
  const { what, folders } = rules
  switch (effect.type) {
    case "file": {
      const path = what.includes("called") ? pathInProject(effect.path, folders, rules) : undefined
      return path === undefined ? undefined : { ...effect, path }
    }
    case "command": {
      if (!what.includes("called")) return undefined
      const { error, ...rest } = effect
      return error !== undefined && what.includes("returned") ? effect : rest
    }
    case "commit":
    case "pull_request":
      return effect
    default:
      return undefined // written by a newer dex
  }
}

/** The maximum size of a message, in bytes. It leaves room for the version, which is added later. */
const MAX_BYTES = MAX_CHUNK_PLAIN - 1_000
const MAX_TEXT_LENGTH = 1 << 20
const MIN_TEXT_LENGTH = 1 << 10

/**
 * Cuts the longest texts of a message that is too large for a hub, and ends each with a note. Then removes hunks if necessary.
 */
function shortenTexts(message: StoredMessage, countLeftOut: (what: string) => void): StoredMessage {
  let shortened = message
  for (let maxLength = MAX_TEXT_LENGTH; !fits(shortened) && maxLength >= MIN_TEXT_LENGTH; maxLength /= 2) {
    const parts = message.parts.map((part) =>
      part.text.length > maxLength ? { ...part, text: cutText(part.text, maxLength) } : part,
    )
    shortened = { ...message, parts }
  }
  if (!fits(shortened)) shortened = { ...shortened, parts: shortened.parts.map(withoutHunks) }
  if (shortened !== message) countLeftOut("text of very long messages")
  return shortened
}

function fits(message: StoredMessage): boolean {
  const line = JSON.stringify(message)
  return line.length * 3 <= MAX_BYTES || Buffer.byteLength(line) <= MAX_BYTES
}

function cutText(text: string, maxLength: number): string {
  const start = text.slice(0, maxLength).toWellFormed()
  return `${start}\n[${text.length - maxLength} more characters are only on the author's machine: a hub takes 4 MB of a message]`
}

function withoutHunks(part: Part): Part {
  if (part.type !== "tool_result") return part
  const { hunks: _, ...rest } = part
  return rest
}

type Paths = { effects: (string | undefined)[]; hunks: (string[] | undefined)[] }

function pathsOf({ parts, effects }: StoredMessage): Paths {
  return {
    effects: effects.map((effect) => (effect.type === "file" ? effect.path : undefined)),
    hunks: parts.map((part) => (part.type === "tool_result" ? part.hunks?.map(({ path }) => path) : undefined)),
  }
}

function restorePaths({ parts, effects }: StoredMessage, paths: Paths): void {
  for (const [i, effect] of effects.entries()) {
    const path = paths.effects[i]
    if (effect.type === "file" && path !== undefined && !wasRedacted(effect.path)) effect.path = path
  }
  for (const [i, part] of parts.entries())
    if (part.type === "tool_result")
      for (const [j, hunk] of (part.hunks ?? []).entries()) {
        const path = paths.hunks[i]?.[j]
        if (path !== undefined && !wasRedacted(hunk.path)) hunk.path = path
      }
}

/** True if the path was redacted; it is then not restored. */
function wasRedacted(path: string): boolean {
  return path.includes("[REDACTED:")
}

/**
 * A path relative to the project's folder, with slashes; undefined if it is outside the project. `folders` are all folders in
 * which the project is or was, on any machine and system, and its worktrees.
 */
export function pathInProject(
  path: string,
  folders: readonly string[],
  { home, platform }: { home: string; platform: NodeJS.Platform },
): string | undefined {
  const plain = normalisePath(path.replace(/^~(?=$|[\\/])/, () => home))
  if (!isAbsolutePath(plain)) return pathInside(/^[A-Za-z]:/.test(plain) ? ".." : plain)
  // The longest folder comes first, because a worktree may be inside the project.
  for (const folder of folders.map(normalisePath).sort((a, b) => b.length - a.length)) {
    const base = folder.replace(/\/+$/, "")
    if (!isAbsolutePath(folder) || base === "" || /^[A-Za-z]:$/.test(base)) continue
    const steps = base.split("/").length
    const names = plain.split("/")
    // The paths are split into names first, because another spelling of the same folder may have another length.
    const key = (text: string) => foldPath(text, isWindowsPath(base) ? "win32" : platform)
    if (names.length > steps && key(names.slice(0, steps).join("/")) === key(base))
      return pathInside(names.slice(steps).join("/"))
  }
  return undefined
}

/** Matches the path of a worktree that an agent keeps inside the project. The files in it belong to the project. */
const WORKTREE = /^\.(?:claude\/worktrees|worktrees|git\/worktrees)\/[^/]+\//

function pathInside(relative: string): string | undefined {
  const short = posix.normalize(relative).replace(/^(?:\.\/)+/, "")
  if (short === "" || short === "." || short === ".." || short.startsWith("../") || short.startsWith("/"))
    return undefined
  return short.replace(WORKTREE, "") || undefined
}

/** Writes a Windows path with forward slashes and without the prefix `\\\\?\\`, and resolves `..` in absolute paths. */
function normalisePath(path: string): string {
  const slashes = /^(?:[A-Za-z]:[\\/]|\\\\)/.test(path) || !path.includes("/") ? path.replaceAll("\\", "/") : path
  const withoutPrefix = slashes.replace(/^\/\/\?\/(?=[A-Za-z]:)/, "")
  return isAbsolutePath(withoutPrefix) ? posix.normalize(withoutPrefix) : withoutPrefix
}

function isAbsolutePath(path: string): boolean {
  return path.startsWith("/") || isWindowsPath(path)
}

function isWindowsPath(path: string): boolean {
  return /^[A-Za-z]:\//.test(path)
}

/** SHA-256 in hexadecimal. */
export function fingerprint(text: string): string {
  return createHash("sha256").update(text).digest("hex")
}
