import { createHash } from "node:crypto"
import { posix } from "node:path"
import type { Effect, Part } from "../core/conversation.ts"
import { messageText } from "../core/format.ts"
import { foldPath } from "../core/path-key.ts"
import { estimateTokens } from "../core/tokens.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import type { ConversationRow, MessageVersion, StoredMessage } from "../store/history/store.ts"
import { forOthers, maskedPlaces, type Places, type TakenOut } from "./for-others.ts"
import { MAX_CHUNK_PLAIN, type WireHead, type WireMessage } from "./wire.ts"

/** What of a conversation can be shared: what people and agents said, what tools were asked, what they answered, … */
export const SHAREABLE = ["said", "called", "returned", "thinking", "images"] as const
export type Shareable = (typeof SHAREABLE)[number]
export const SHARED_BY_DEFAULT: readonly Shareable[] = ["said", "called", "returned"]

/** Raised whenever the same message would leave otherwise than before. */
export const OUTGOING_VERSION = 1

export type OutgoingRules = {
  what: readonly Shareable[]
  /** Where the project is and was. */
  folders: readonly string[]
  home: string
  platform: NodeJS.Platform
  places: Places
}

export type Outgoing = {
  head: WireHead
  messages: WireMessage[]
  taken_out: TakenOut[]
  /** Parts and effects that stay here, by what they are. */
  left_out: Record<string, number>
}

/** Exactly what a hub is given of a conversation. Pure: the same input gives the same bytes. */
export function outgoingOf(
  row: ConversationRow,
  stored: readonly StoredMessage[],
  versions: readonly MessageVersion[],
  rules: OutgoingRules,
): Outgoing {
  const left: Record<string, number> = {}
  const leave = (what: string) => {
    left[what] = (left[what] ?? 0) + 1
  }
  const chosen = stored.map((message) => chosenOf(message, rules, leave))
  const paths = chosen.map(pathsOf)
  const said = {
    title: row.title && rules.what.includes("said") ? row.title : undefined,
    git_branch: row.git_branch,
    agent_version: row.agent_version,
    models: row.models,
    messages: chosen,
  }
  const { value, taken_out } = forOthers(said, rules.places)
  // They are the project's own by now, and the same for everybody: a folder in it may be called like the user.
  for (const [i, message] of value.messages.entries()) putPaths(message, paths[i]!)
  value.messages = value.messages.map((message) => shortened(message, leave))
  const versionOf = new Map(versions.map(({ number, version }) => [number, version]))
  const messages = value.messages.map((message) => ({
    ...message,
    version: versionFor(versionOf.get(message.number) ?? 0, message),
  }))
  const { messages: _, ...head } = value
  return { head: headOf(row, head, messages, rules.places), messages, taken_out, left_out: left }
}

/**
 * Grows with the message's own version, and differs where only what leaves of it does (newer rules, another choice). A message
 * that did not change keeps it, so that its chunk is not sent again.
 */
function versionFor(local: number, message: StoredMessage): number {
  return local * CONTENTS + Number.parseInt(fingerprint(JSON.stringify(message)).slice(0, 4), 16)
}
const CONTENTS = 1 << 16

/** What a conversation is called on a hub: an id that names a place on this machine is not told. */
export function sharedId(id: string, places: Places): string {
  return maskedPlaces(id, places).text === id ? id : `dex-${fingerprint(id).slice(0, 32)}`
}

function headOf(
  row: ConversationRow,
  said: Pick<WireHead, "title" | "git_branch" | "agent_version" | "models">,
  messages: WireMessage[],
  places: Places,
): WireHead {
  const current = messages.filter(({ superseded }) => !superseded)
  const shown = current.length > 0 ? current : messages
  const { parent } = row
  return {
    source: row.ref.source,
    id: sharedId(row.ref.id, places),
    kind: row.kind,
    ...said,
    parent: parent && { ...parent, id: sharedId(parent.id, places) },
    fork_of: row.fork_of === undefined ? undefined : sharedId(row.fork_of, places),
    started_at: row.started_at,
    ended_at: row.ended_at,
    usage: row.usage,
    message_count: row.message_count,
    superseded: row.superseded,
    copied_count: row.copied_count,
    estimated_tokens: shown.reduce((sum, message) => sum + estimateTokens(messageText(message, "stripped")), 0),
    text_bytes: messages.reduce((sum, message) => sum + textBytes(message), 0),
    redaction_version: REDACTION_VERSION,
  }
}

function textBytes({ parts }: WireMessage): number {
  return parts.reduce((sum, part) => sum + Buffer.byteLength(part.text), 0)
}

/** Only what was chosen, and of paths only what is inside the project. */
function chosenOf(message: StoredMessage, rules: OutgoingRules, leave: (what: string) => void): StoredMessage {
  const parts = message.parts.flatMap((part) => {
    const kind = part.origin === "injected" ? undefined : kindOf(part)
    if (kind !== undefined && rules.what.includes(kind)) return [withHunksBelow(part, rules, leave)]
    leave(kind ?? "injected")
    return []
  })
  const effects = message.effects.flatMap((effect) => {
    const kept = effectFor(effect, rules)
    if (!kept) leave(effect.type === "file" ? "files elsewhere" : "effects")
    return kept ? [kept] : []
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
      return undefined // of a newer dex: what it is, nobody has agreed to
  }
}

function withHunksBelow(part: Part, rules: OutgoingRules, leave: (what: string) => void): Part {
  if (part.type !== "tool_result" || !part.hunks) return part
  const hunks = part.hunks.flatMap((hunk) => {
    const path = pathInProject(hunk.path, rules.folders, rules)
    if (path === undefined) leave("changes elsewhere")
    return path === undefined ? [] : [{ ...hunk, path }]
  })
  const { hunks: _, ...rest } = part
  return hunks.length === 0 ? rest : { ...rest, hunks }
}

function effectFor(effect: Effect, rules: OutgoingRules): Effect | undefined {
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
      return undefined // of a newer dex
  }
}

/** The version is added to a message after it was measured. */
const MOST_BYTES = MAX_CHUNK_PLAIN - 1_000
const LONGEST_TEXT = 1 << 20
const SHORTEST_TEXT = 1 << 10

/** A message that a hub would not take leaves with less of its longest texts, and says so where they end. */
function shortened(message: StoredMessage, leave: (what: string) => void): StoredMessage {
  let fitting = message
  for (let most = LONGEST_TEXT; !isTaken(fitting) && most >= SHORTEST_TEXT; most /= 2) {
    const parts = message.parts.map((part) =>
      part.text.length > most ? { ...part, text: cutAt(part.text, most) } : part,
    )
    fitting = { ...message, parts }
  }
  if (!isTaken(fitting)) fitting = { ...fitting, parts: fitting.parts.map(withoutHunks) }
  if (fitting !== message) leave("text of very long messages")
  return fitting
}

function isTaken(message: StoredMessage): boolean {
  const line = JSON.stringify(message)
  return line.length * 3 <= MOST_BYTES || Buffer.byteLength(line) <= MOST_BYTES
}

function cutAt(text: string, most: number): string {
  const kept = text.slice(0, most).toWellFormed()
  return `${kept}\n[${text.length - most} more characters are only on the author's machine: a hub takes 4 MB of a message]`
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

function putPaths({ parts, effects }: StoredMessage, paths: Paths): void {
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

/** What redaction took out of a path stays out. */
function wasRedacted(path: string): boolean {
  return path.includes("[REDACTED:")
}

/**
 * A path from the project's folder on, with slashes; undefined where it is elsewhere. `folders` are all places where the
 * project is or was: of this machine, of another one, of Windows, and its worktrees.
 */
export function pathInProject(
  path: string,
  folders: readonly string[],
  { home, platform }: { home: string; platform: NodeJS.Platform },
): string | undefined {
  const plain = spelled(path.replace(/^~(?=$|[\\/])/, () => home))
  if (!isWhole(plain)) return inside(/^[A-Za-z]:/.test(plain) ? ".." : plain)
  // The longest first: a worktree may lie inside the project.
  for (const folder of folders.map(spelled).sort((a, b) => b.length - a.length)) {
    const base = folder.replace(/\/+$/, "")
    if (!isWhole(folder) || base === "" || /^[A-Za-z]:$/.test(base)) continue
    const steps = base.split("/").length
    const names = plain.split("/")
    // Compared name by name: the same one may have another length in another spelling.
    const key = (text: string) => foldPath(text, isWindows(base) ? "win32" : platform)
    if (names.length > steps && key(names.slice(0, steps).join("/")) === key(base))
      return inside(names.slice(steps).join("/"))
  }
  return undefined
}

/** Agents keep worktrees below the project: the files in them are the project's. */
const WORKTREE = /^\.(?:claude\/worktrees|worktrees|git\/worktrees)\/[^/]+\//

function inside(relative: string): string | undefined {
  const short = posix.normalize(relative).replace(/^(?:\.\/)+/, "")
  if (short === "" || short === "." || short === ".." || short.startsWith("../") || short.startsWith("/"))
    return undefined
  return short.replace(WORKTREE, "") || undefined
}

/** With slashes, without `..` in it, and without what Windows may put before a drive. */
function spelled(path: string): string {
  const slashes = /^(?:[A-Za-z]:[\\/]|\\\\)/.test(path) || !path.includes("/") ? path.replaceAll("\\", "/") : path
  const bare = slashes.replace(/^\/\/\?\/(?=[A-Za-z]:)/, "")
  return isWhole(bare) ? posix.normalize(bare) : bare
}

function isWhole(path: string): boolean {
  return path.startsWith("/") || isWindows(path)
}

function isWindows(path: string): boolean {
  return /^[A-Za-z]:\//.test(path)
}

/** SHA-256 in hexadecimal. */
export function fingerprint(text: string): string {
  return createHash("sha256").update(text).digest("hex")
}
