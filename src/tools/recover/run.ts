import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, extname, isAbsolute, join, resolve } from "node:path"
import { isoDate } from "../../core/dates.ts"
import { DexError, messageOf } from "../../core/error.ts"
import { isSamePath } from "../../core/path-key.ts"
import { formatRef } from "../../core/ref.ts"
import { versionsOfFile } from "../../git/file-versions.ts"
import { pathBelowAny, pathRootsOf } from "../../learn/paths.ts"
import { completeText, type FileState } from "../../learn/recover/file-state.ts"
import { recoverState } from "../../learn/recover/replay.ts"
import { doubtsAfter, sightingsIn } from "../../learn/recover/sightings.ts"
import { many } from "../../render/words.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { conversationOf } from "../fields.ts"
import { otherPrivateProjects } from "../learned.ts"
import { folderOnDisk, projectPathOf, resolveConversation } from "../resolve.ts"
import type { RecoverInput } from "./recover.ts"

export async function run(dex: Dex, input: RecoverInput) {
  if (!dex.hasHistory()) throw new DexError("no_history", "No conversations have been read yet. Run `dex sync` first.")
  if (input.at === undefined) return listVersions(dex, input)
  const { row, number } = await resolveConversation(dex, { id: input.at })
  const messages = await messagesUntil(await dex.store(), row, number)
  const { path, isWanted } = wantedFile(dex, input.file, row, messages)
  const seen = sightingsIn(messages, isWanted)
  if (seen.length === 0) throw notSeenError(input, row, number)
  const folder = row.project === undefined ? undefined : folderOnDisk(dex, row.project)
  const versions = folder === undefined || isAbsolute(path) ? [] : await versionsOfFile(folder, path, dex.signal)
  const found = recoverState(seen, versions)
  const whole = found.possible > 1 ? undefined : completeText(found.state)
  const reasons = [
    ...missingLinesReason(found.state, found.possible),
    ...(whole === undefined || found.confirmedBy ? [] : reasonsToDoubt(whole, doubtsAfter(messages, seen, path), row)),
  ]
  const text = whole ?? textWithGaps(found.state)
  const level = reasons.length === 0 ? ("complete" as const) : ("partial" as const)
  const output = {
    path,
    level,
    id: formatRef(refOf(seen.at(-1)!.message, row)),
    lines: lineCount(found.state),
    missing_lines: missingLines(found.state),
    base: found.base?.name,
    confirmed_by: found.confirmedBy?.name,
    notes: reasons,
  }
  if (input.print) return { ...output, text }
  const target = input.output === undefined ? undefined : resolve(dex.cwd, input.output)
  if (target !== undefined && existsSync(target) && !input.yes) return { ...output, exists: target }
  return { ...output, written: writeText(target ?? unusedPath(resolve(dex.cwd, input.file), level), text, target) }
}

/** A message of the conversation, or of a subagent. */
type SeenMessage = StoredMessage & { row?: ConversationRow }

/**
 * The messages of a conversation and its subagents in order of time, up to a message. The results of this message's own calls
 * are included, so that an edit counts at the message that asked for it.
 */
async function messagesUntil(
  store: HistoryReader,
  row: ConversationRow,
  number: number | undefined,
): Promise<SeenMessage[]> {
  const own = await store.messages(row.ref)
  const last = number === undefined ? own.length - 1 : own.findIndex((message) => message.number === number)
  if (last === -1 && number !== undefined)
    throw new DexError("not_found", `${formatRef(row.ref)} has no message ${number}.`)
  const calls = new Set(own[last]?.parts.flatMap((part) => (part.type === "tool_call" ? (part.call_id ?? []) : [])))
  const until = own.flatMap((message, i): SeenMessage[] => {
    if (i <= last) return [message]
    const parts = message.parts.filter((part) => part.type === "tool_result" && calls.has(part.call_id ?? ""))
    return parts.length === 0 ? [] : [{ ...message, parts, effects: [] }]
  })
  const end = number === undefined ? Number.POSITIVE_INFINITY : (until.findLast(({ at }) => at !== undefined)?.at ?? 0)
  const subagents: SeenMessage[] = []
  for (const ref of await store.withSubagents([row.ref])) {
    if (formatRef(ref) === formatRef(row.ref)) continue
    const other = await store.conversation(ref)
    if (!other || other.private !== row.private) continue
    subagents.push(
      ...(await store.messages(ref))
        .filter(({ at }) => at !== undefined && at <= end)
        .map((message) => ({ ...message, row: other })),
    )
  }
  if (subagents.length === 0) return until
  let time = 0
  const timed = until.map((message) => {
    time = Math.max(time, message.at ?? 0)
    return { message, time }
  })
  return [...timed, ...subagents.map((message) => ({ message, time: message.at! }))]
    .sort((a, b) => a.time - b.time)
    .map(({ message }) => message)
}

/**
 * The file's path in its project, and whether a path in a message means it. If the conversation worked on files of that name in
 * several checkouts, it is the one that was named, or the one that it worked on last.
 */
function wantedFile(dex: Dex, file: string, row: ConversationRow, messages: readonly SeenMessage[]) {
  const named = resolve(dex.cwd, file)
  const roots = pathRootsOf(row)
  const path = projectPathOf(dex, file) ?? pathBelowAny(roots, named) ?? pathBelowAny(roots, file) ?? named
  const matching = messages.flatMap(({ effects, parts }) =>
    [
      ...effects.flatMap((effect) => (effect.type === "file" && effect.action !== "mentioned" ? effect.path : [])),
      ...parts.flatMap((part) => (part.type === "tool_result" ? (part.hunks ?? []).map((hunk) => hunk.path) : [])),
    ].filter(
      (one) => one === file || isSamePath(one, named, dex.machine.platform) || pathBelowAny(roots, one) === path,
    ),
  )
  const chosen = matching.find((one) => isSamePath(one, named, dex.machine.platform)) ?? matching.at(-1)
  const inFolder = (one: string) => join(isAbsolute(one) ? "" : (row.cwds[0] ?? ""), one)
  return { path, isWanted: (one: string) => chosen !== undefined && inFolder(one) === inFolder(chosen) }
}

function notSeenError({ file, at }: RecoverInput, row: ConversationRow, number: number | undefined): DexError {
  const until = number === undefined ? "" : ` up to message ${number}`
  return new DexError(
    "not_found",
    `${formatRef(row.ref)} does not show or change ${file}${until} (--at ${at}). \`dex recover ${file}\` lists the messages that changed it.`,
  )
}

function refOf(message: SeenMessage, row: ConversationRow) {
  return { ...(message.row ?? row).ref, number: message.number }
}

function lineCount({ lines, count }: FileState): number {
  const pieces = count ?? lines.length
  return lines.at(-1) === "" ? pieces - 1 : pieces
}

function missingLines({ lines }: FileState): number {
  return lines.reduce((sum, line) => sum + (line === undefined ? 1 : 0), 0)
}

function missingLinesReason(state: FileState, possible: number): string[] {
  if (possible > 1)
    return [
      `${many(possible, "commit")} would fit, with different texts, so the missing lines were not taken from one.`,
    ]
  const missing = missingLines(state)
  return [
    ...(missing > 0 ? [`No message shows ${many(missing, "line")} of it.`] : []),
    ...(state.count === undefined ? ["No message shows where the file ends."] : []),
  ]
}

const MAX_DOUBTS = 5
const REDACTED = /\[REDACTED:[a-z0-9-]{1,40}\]/g

function reasonsToDoubt(
  text: string,
  doubts: readonly { message: SeenMessage; command: string }[],
  row: ConversationRow,
): string[] {
  const secrets = text.match(REDACTED)?.length ?? 0
  return [
    ...(secrets > 0 ? [`dex removed ${many(secrets, "secret")} from it.`] : []),
    ...doubts
      .slice(-MAX_DOUBTS)
      .map(
        ({ message, command }) =>
          `A command that may have changed it ran since all of it was seen: ${command.slice(0, 120)} (${formatRef(refOf(message, row))})`,
      ),
    ...(doubts.length > MAX_DOUBTS
      ? [`${many(doubts.length - MAX_DOUBTS, "earlier command")} may have changed it too.`]
      : []),
  ]
}

/** The known lines, with a mark in place of others. */
function textWithGaps({ lines, count }: FileState): string {
  const pieces: string[] = []
  for (let i = 0; i < lines.length; ) {
    const line = lines[i]
    if (line !== undefined) pieces.push(line)
    const from = i++
    if (line !== undefined) continue
    while (i < lines.length && lines[i] === undefined) i++
    pieces.push(gapMark(from + 1, i))
  }
  if (count === undefined) pieces.push(gapMark(lines.length + 1))
  return pieces.join("\n")
}

function gapMark(from: number, to?: number): string {
  const which = to === undefined ? `from line ${from} on` : from === to ? `line ${from}` : `lines ${from} to ${to}`
  return `[dex: not known: ${which}]`
}

/** A name beside the file that is not taken, and that says whether the text is complete. */
function unusedPath(file: string, level: "complete" | "partial"): string {
  const extension = extname(file)
  const stem = join(dirname(file), basename(file, extension))
  const word = level === "complete" ? "recovered" : "partial"
  for (let i = 1; ; i++) {
    const path = `${stem}.${word}${i === 1 ? "" : `-${i}`}${extension}`
    if (!existsSync(path)) return path
  }
}

/** Writes a new file, or replaces the file that the person agreed to replace; a link is replaced and not followed. */
function writeText(path: string, text: string, agreed: string | undefined): string {
  const temporary = `${path}.dex-${process.pid}`
  try {
    if (agreed === undefined || !existsSync(path)) writeFileSync(path, text, { flag: "wx" })
    else {
      writeFileSync(temporary, text, { flag: "wx" })
      renameSync(temporary, path)
    }
    return path
  } catch (error) {
    rmSync(temporary, { force: true })
    throw new DexError("not_written", `${path} could not be written (${messageOf(error)}). Name another with --output.`)
  }
}

const MAX_CONVERSATIONS = 20
const MAX_VERSIONS = 50

async function listVersions(dex: Dex, { file }: RecoverInput) {
  const store = await dex.store()
  const { isHidden } = await otherPrivateProjects(dex)
  const path = projectPathOf(dex, file) ?? resolve(dex.cwd, file)
  const rows: ConversationRow[] = []
  for (const ref of await store.touching(path)) {
    const row = await store.conversation(ref)
    if (row && !isHidden(row.project) && row.kind !== "document") rows.push(row)
  }
  const newest = rows.sort((a, b) => (b.ended_at ?? 0) - (a.ended_at ?? 0))
  const versions: { id: string; date: string; what: "written" | "edited"; title: string; at: number }[] = []
  for (const row of newest.slice(0, MAX_CONVERSATIONS)) {
    const messages = await store.messages(row.ref)
    const { isWanted } = wantedFile(dex, file, row, messages)
    for (const { sighting, message } of sightingsIn(messages, isWanted)) {
      if (sighting.type === "lines" || message.copied) continue
      versions.push({
        id: formatRef({ ...row.ref, number: message.number }),
        date: message.at === undefined ? "" : isoDate(message.at),
        what: sighting.type === "whole" ? "written" : "edited",
        title: conversationOf(row).title,
        at: message.at ?? 0,
      })
    }
  }
  const sorted = versions.sort((a, b) => b.at - a.at)
  const leftOut = sorted.length - MAX_VERSIONS
  return {
    path,
    versions: sorted.slice(0, MAX_VERSIONS).map(({ at: _, ...version }) => version),
    notes: [
      ...(leftOut > 0 ? [`${many(leftOut, "older change")} not listed.`] : []),
      ...(newest.length > MAX_CONVERSATIONS
        ? [`Only the newest ${MAX_CONVERSATIONS} of ${newest.length} conversations were read.`]
        : []),
    ],
  }
}
