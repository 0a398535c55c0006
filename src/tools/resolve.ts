import { homedir } from "node:os"
import { resolve } from "node:path"
import type { Agent } from "../agents/kit/agent.ts"
import { agentOf, agents } from "../agents/registry.ts"
import type { SourceId } from "../core/conversation.ts"
import { DexError } from "../core/error.ts"
import { isFolder, lookAt } from "../core/look-at.ts"
import { isSamePath } from "../core/path-key.ts"
import { formatRef, isSameConversation, parseRef, type Ref, siblingRef } from "../core/ref.ts"
import { checkoutAt } from "../git/project.ts"
import { pathBelowAny } from "../learn/paths.ts"
import { many } from "../render/words.ts"
import { projectsHiddenFrom, projectsNamed } from "../search/scope.ts"
import type { ConversationRow } from "../store/history/store.ts"
import type { Dex } from "./context.ts"
import { refOfListedRow } from "./listed.ts"

/** Finds the conversation that a ref, a unique prefix or a row number of the last listing names. */
export async function resolveRef(dex: Dex, text: string): Promise<{ row: ConversationRow; number?: number }> {
  const typed = text.trim()
  const listed = refOfListedRow(dex, typed)
  if (listed === undefined && /^\d{1,3}$/.test(typed)) throw noRowError(dex, typed)
  const [, commit] = /^git:([0-9a-f]{4,64})$/.exec(listed ?? typed) ?? []
  if (commit !== undefined)
    throw new DexError("commit", `That is a commit, not a conversation. To see it: git show ${commit}`)
  const query = parseRef(listed ?? typed)
  if (!query)
    throw new DexError(
      "bad_ref",
      `"${typed}" is not a ref. A ref looks like claude_code:1f3c2a#12; \`dex list\` and \`dex search\` print them.`,
    )
  const rows = await (await dex.store()).resolve(query, await projectsHiddenFromCaller(dex))
  const [row, ...others] = rows.filter((candidate) => isReadable(dex, candidate) || listed === undefined)
  if (!row) throw query.source === "docs" ? noDocumentError(typed) : notFoundError(dex, typed)
  if (!isReadable(dex, row)) {
    throw new DexError(
      "private",
      `That conversation belongs to a private project (${row.project}). Run dex inside that folder to read it.`,
    )
  }
  if (others.length > 0) {
    const names = rows.slice(0, 5).map((candidate) => formatRef(candidate.ref))
    throw new DexError(
      "ambiguous_ref",
      `"${typed}" matches several conversations: ${names.join(", ")}${rows.length > 5 ? ", …" : ""}. Type more of it.`,
    )
  }
  if (query.section !== undefined) return { row, number: await sectionNumber(dex, row, query.section) }
  return { row, number: query.number }
}

/** The private projects whose existence an agent must not learn. Empty for a person, who is told where a conversation is. */
export async function projectsHiddenFromCaller(dex: Dex): Promise<string[]> {
  if (dex.caller === undefined) return []
  return projectsHiddenFrom(await (await dex.store()).projects("private"), dex.project, dex.machine.platform)
}

/** Finds a section by its heading or anchor, ignoring case. */
async function sectionNumber(dex: Dex, row: ConversationRow, section: string): Promise<number> {
  const lowerCased = section.trim().toLowerCase()
  const marks = (await (await dex.store()).messages(row.ref)).flatMap(({ number, parts }) =>
    parts.flatMap((part) => (part.type === "text" && part.section ? [{ number, ...part.section }] : [])),
  )
  const matches = (name: string) => name.toLowerCase() === lowerCased
  const match =
    marks.find(({ name }) => matches(name)) ??
    marks.find(
      ({ anchor, headings }) => matches(anchor) || matches(headings.at(-1) ?? "") || matches(headings.join(" > ")),
    )
  if (match) return match.number
  throw new DexError(
    "no_section",
    `There is no section "${section}" in ${formatRef(row.ref)}. \`dex docs outline ${formatRef(row.ref)}\` lists them.`,
  )
}

/**
 * The error for a number that is not a row of the last listing. dex never takes a number for the beginning of an id, because a
 * mistyped row number could then select an unrelated conversation.
 */
function noRowError(dex: Dex, typed: string): DexError {
  const rowCount = dex.lastListing().refs.length
  if (rowCount > 0)
    return new DexError(
      "not_found",
      `There is no row ${typed}: the last listing in this terminal had ${many(rowCount, "row")}.`,
    )
  return new DexError(
    "not_found",
    `There is no row ${typed}: this terminal has no listing. Run \`dex list\` or \`dex search\` first, or give a ref (claude_code:1f3c2a).`,
  )
}

function notFoundError(dex: Dex, typed: string): DexError {
  const hint = dex.isTeam
    ? "`dex list --team` lists all of them."
    : "`dex list` lists all of them; `dex sync` reads new ones."
  return new DexError("not_found", `No conversation "${typed}" was found. ${hint}`)
}

function noDocumentError(typed: string): DexError {
  return new DexError(
    "not_found",
    `No document "${typed}" was found. \`dex list --in docs\` lists the collections; \`dex list --collections NAME\` lists the documents of one.`,
  )
}

/** Finds an agent by its source, among those that dex knows and those that the user added. */
export async function agentNamed(dex: Dex, source: SourceId): Promise<Agent | undefined> {
  return agentOf(source) ?? (await dex.outsideAgents()).agents.find((agent) => agent.source === source)
}

/**
 * True if the conversation may be read. Private projects can be read only from inside their folder. On a hub, nothing needs to be
 * checked here, because its store returns a row only to people who may read it.
 */
function isReadable(dex: Dex, row: ConversationRow): boolean {
  return !row.private || dex.isTeam === true || isCurrentProject(dex, row.project)
}

/** True if this is the current project, however its path is spelled. */
export function isCurrentProject(dex: Dex, project: string | undefined): boolean {
  return project !== undefined && isSamePath(project, dex.project, dex.machine.platform)
}

/** Returns the project of the folder that a person named. Throws if there is no such folder. */
export function projectNamed(dex: Dex, text: string): string {
  const folder = folderNamed(dex, text)
  if (!isFolder(folder))
    throw new DexError(
      "no_project",
      `There is no folder ${folder}. Give a folder of the project; \`.\` is the current one.`,
    )
  return dex.projectOf(folder)
}

/** The folder of a project in which its files can be read: the current one, if it is one of its places, or any that exists. */
export function folderOnDisk(dex: Dex, project: string): string {
  if (isCurrentProject(dex, project)) return dex.place
  return dex.foldersOf(project).find(isFolder) ?? project
}

/** The path of a file relative to its project. A file in another clone or in a worktree is the project's file, too. */
export function projectPathOf(dex: Dex, file: string): string | undefined {
  const path = resolve(dex.cwd, file)
  const checkout = checkoutAt(dex.cwd)?.root
  return pathBelowAny([...(checkout === undefined ? [] : [checkout]), dex.place, ...dex.foldersOf(dex.project)], path)
}

/** A filter for the facts of a project by any of its names. If several projects have such a name, by a part of their paths. */
export async function projectCalled(dex: Dex, typed: string): Promise<{ project: string; exactly?: true }> {
  const [first, ...others] = projectsNamed(await (await dex.store()).projects(), typed)
  return first !== undefined && others.length === 0 ? { project: first, exactly: true } : { project: typed }
}

export function folderNamed(dex: Dex, text: string): string {
  return resolve(dex.cwd, text.replace(/^~(?=$|[\\/])/, dex.machine.home || homedir()))
}

/**
 * Describes why none of these folders can be used. "Is gone" would be wrong for a folder that cannot be accessed, or whose server
 * does not answer.
 */
export function folderProblem(folders: readonly string[]): string {
  return folders.some((folder) => lookAt(folder) === "unknown") ? "cannot be opened" : "is gone"
}

/** The conversation that `--session` selects. Undefined for `all` or nothing; `current` selects the caller's own conversation. */
export async function resolveSession(dex: Dex, session: string | undefined): Promise<Ref | undefined> {
  if (session === undefined || session === "all") return undefined
  return (await resolveConversation(dex, { id: session })).row.ref
}

/** Like resolveRef, but also accepts `current`. `session` can replace the id; if both are given, they must match. */
export async function resolveConversation(
  dex: Dex,
  input: { id?: string; session?: string },
): Promise<{ row: ConversationRow; number?: number }> {
  const session = input.session === "all" ? undefined : input.session
  const id = input.id ?? session
  if (id === undefined)
    throw new DexError("no_ref", "Which conversation? Give a ref, a row number or `current`. `dex list` shows them.")
  const current = /^current(#\d+)?$/.exec(id.trim())
  const resolved = await resolveRef(dex, current ? `${await currentRef(dex)}${current[1] ?? ""}` : id)
  if (input.id === undefined || session === undefined) return resolved
  const { ref } = (await resolveConversation(dex, { id: session })).row
  const isInSession =
    [resolved.row.ref.id, resolved.row.parent?.id].includes(ref.id) &&
    isSameConversation(siblingRef(resolved.row.ref, ref.id), ref)
  if (isInSession) return resolved
  throw new DexError(
    "not_in_session",
    `${formatRef(resolved.row.ref)} is not part of the session ${formatRef(ref)}. Omit --session to read it.`,
  )
}

/** The session whose id an agent passed to its child processes in the environment. */
export function currentSession(dex: Pick<Dex, "machine">): string | undefined {
  for (const { source, session } of agents) {
    const id = session && dex.machine.env[session.variable]
    if (id) return formatRef({ source, id })
  }
  return undefined
}

async function currentRef(dex: Dex): Promise<string> {
  const session = currentSession(dex)
  if (session !== undefined) return session
  const newest = await findNewestActive(dex)
  if (newest) return formatRef(newest.ref)
  throw new DexError(
    "no_session",
    "There is no current session: no agent is running this command, and no conversation of this project was active in the last hour. Name one with --session <ref>.",
  )
}

const ACTIVE_MS = 3_600_000
const MAX_CANDIDATES = 50

/** The conversation of this project that changed last, if that was within the last hour: most likely the caller's own. */
async function findNewestActive(dex: Dex): Promise<ConversationRow | undefined> {
  if (!dex.hasHistory()) return undefined
  const filter = {
    in_project: dex.project,
    inside: dex.project,
    kinds: ["person" as const],
    limit: MAX_CANDIDATES,
    offset: 0,
  }
  const { rows } = await (await dex.store()).list(filter)
  const sharedPaths = new Set(rows.map((row) => row.path).filter((path, i, all) => all.indexOf(path) !== i))
  const [newest] = rows
    .filter((row) => !row.archived)
    // The modification time of a database that several conversations share says nothing about one of them.
    .map((row) => ({ row, at: Math.max(row.ended_at ?? 0, sharedPaths.has(row.path) ? 0 : writtenAt(row.path)) }))
    .sort((a, b) => b.at - a.at)
  return newest && dex.now() - newest.at < ACTIVE_MS ? newest.row : undefined
}

function writtenAt(path: string): number {
  const stats = lookAt(path)
  return stats === undefined || stats === "unknown" ? 0 : stats.mtimeMs
}
