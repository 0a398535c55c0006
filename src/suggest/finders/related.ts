import { DAY_MS, localDay } from "../../core/dates.ts"
import { formatRef } from "../../core/ref.ts"
import type { Moment } from "../../core/suggestion.ts"
import { fileNameOf, folderOf, isPlainPath, isTest, stemOf } from "../../learn/paths.ts"
import type { WorkedFilePath } from "../../store/knowledge/files.ts"
import type { Session } from "../session.ts"
import type { Candidate, Finder, Sources } from "./finder.ts"

/** The most conversations to consider. Older ones say little about how a file is worked on now. */
const MAX_CONVERSATIONS = 60
const MAX_SESSION_FILES = 6
const MAX_CANDIDATES = 8
/** Added to the denominator: if there are few conversations, one that edited both files proves little. */
const DOUBT = 1.5
const HOUR = 3_600_000

export const findRelated: Finder = ({ knowledge }, moment, session) => {
  const { file } = moment
  if (file === undefined) return []
  const here = { knowledge, project: moment.project }
  const about = togetherWith(here, file)
  const branch = onBranch(here, moment)
  const known = new Set([file, ...session.files])
  const evidence = [...new Set(session.files)]
    .filter((other) => other !== file)
    .slice(-MAX_SESSION_FILES)
    .map((other) => togetherWith(here, other))
  const paths = new Set([...about.files.keys(), ...branch.files.keys()])
  return [...paths]
    .filter((path) => isPlainPath(path) && !known.has(path) && !session.hasMentioned(fileNameOf(path)))
    .map((path) => ({
      path,
      together: about.files.get(path) ?? { path, edited: 0, read: 0, at: 0 },
      branch: branch.files.get(path) ?? { path, edited: 0, read: 0, at: 0 },
    }))
    .filter(({ together, branch }) => together.edited > 0 || branch.edited > 0)
    .sort((a, b) => b.branch.edited + b.together.edited - a.branch.edited - a.together.edited)
    .slice(0, MAX_CANDIDATES)
    .map((other) => candidate(file, other, { about, branch, evidence }, moment, session))
}

/** Files that were edited on this branch. Returns nothing for the main branch. */
function onBranch({ knowledge, project }: Sources & { project: string }, { branch, session }: Moment): FileContext {
  const files = new Map<string, TogetherCounts>()
  if (branch === undefined || /^(?:main|master|trunk|develop|HEAD)$/.test(branch)) return { conversations: 0, files }
  const roots = knowledge.files.rootsOnBranch(project, branch, MAX_CONVERSATIONS).filter(({ root }) => root !== session)
  for (const worked of knowledge.files.filesWorkedOn(project, roots)) add(files, worked)
  return { conversations: roots.length, files }
}

type TogetherCounts = { path: string; edited: number; read: number; at: number }
type FileContext = { conversations: number; files: Map<string, TogetherCounts> }

function togetherWith({ knowledge, project }: Sources & { project: string }, file: string): FileContext {
  const visits = knowledge.files.visitsTo(project, file, MAX_CONVERSATIONS).filter(({ edits }) => edits > 0)
  const roots = [...new Map(visits.map(({ source, root }) => [`${source}:${root}`, { source, root }])).values()]
  const files = new Map<string, TogetherCounts>()
  for (const worked of knowledge.files.filesWorkedOn(project, roots)) if (worked.path !== file) add(files, worked)
  return { conversations: roots.length, files }
}

function add(files: Map<string, TogetherCounts>, { path, edits, at }: WorkedFilePath): void {
  const sum = files.get(path) ?? { path, edited: 0, read: 0, at: 0 }
  if (edits > 0) {
    sum.edited++
    sum.at = Math.max(sum.at, at)
  } else sum.read++
  files.set(path, sum)
}

type OtherFile = { path: string; together: TogetherCounts; branch: TogetherCounts }
type KnownWork = { about: FileContext; branch: FileContext; evidence: FileContext[] }

function candidate(
  file: string,
  { path, together, branch }: OtherFile,
  known: KnownWork,
  moment: Moment,
  session: Session,
): Candidate {
  const at = Math.max(together.at, branch.at)
  const hours = Math.max(0, moment.at - at) / HOUR
  const shares = known.evidence.map(
    ({ conversations, files }) => (files.get(path)?.edited ?? 0) / (conversations + DOUBT),
  )
  const conversationCount = known.about.conversations
  const day = localDay(at)
  const branchText = branch.edited > 0 ? `Edited on this branch, last on ${day}.` : ""
  const togetherText =
    together.edited > 0
      ? `Edited ${inHowMany(together.edited, conversationCount)} that edited ${fileNameOf(file)}.`
      : ""
  return {
    kind: "related_code",
    key: `file:${path}`,
    title: path,
    summary: [branchText, togetherText].filter((text) => text !== "").join(" "),
    reason:
      branch.edited > 0
        ? `${fileNameOf(path)} was edited on this branch, like ${fileNameOf(file)} is now.`
        : `${fileNameOf(file)} and ${fileNameOf(path)} were changed together ${times(together.edited)}, last on ${day}.`,
    file: path,
    names: [fileNameOf(path)],
    features: {
      together: together.edited / (conversationCount + DOUBT),
      // A conversation that edited the file counts here too, because an edit is never weaker evidence than a read.
      touched_together: (together.edited + together.read) / (conversationCount + DOUBT),
      branch: branch.edited / (known.branch.conversations + DOUBT),
      on_branch: branch.edited > 0 ? 1 : 0,
      session: Math.max(0, ...shares),
      same_folder: folderOf(file) === folderOf(path) ? 1 : 0,
      same_stem: stemOf(file) === stemOf(path) ? 1 : 0,
      within_hours: Math.exp(-hours / 3),
      within_days: Math.exp(-hours / 48),
      in_prompt: shareIn(wordsOf(path), session.prompt),
      listed: session.hasListed(fileNameOf(path)) ? 1 : 0,
      is_test: isTest(path) ? 1 : 0,
      is_text: /\.(?:md|txt|ya?ml|json|toml|lock)$/i.test(path) ? 1 : 0,
      done: Math.log1p(session.files.length),
      visits: Math.log1p(conversationCount),
      together_count: together.edited,
    },
  }
}

function inHowMany(edited: number, total: number): string {
  if (edited < total) return `in ${edited} of the ${total} conversations`
  return total === 1 ? "in the one conversation" : `in all ${total} conversations`
}

function times(count: number): string {
  return count === 1 ? "once" : count === 2 ? "twice" : `${count} times`
}

function wordsOf(path: string): string[] {
  const words = path
    .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .match(/[a-z]{3,}/g)
  return [...new Set(words ?? [])]
}

function shareIn(words: string[], text: string): number {
  if (words.length === 0 || text === "") return 0
  const lower = text.toLowerCase()
  return words.filter((word) => lower.includes(word)).length / words.length
}

const MAX_VISITS = 20
const MAX_FILES = 3

/** The last conversation that edited this file. Git shows changes outside of conversations. */
export const findConversation: Finder = ({ knowledge }, moment, session) => {
  const { file } = moment
  if (file === undefined) return []
  const visits = knowledge.files
    .visitsTo(moment.project, file, MAX_VISITS)
    .filter(({ edits, id, root }) => edits > 0 && id !== moment.session && root !== moment.session)
  const [last] = visits
  if (!last) return []
  const others = knowledge.files
    .filesWorkedOn(moment.project, [last])
    .filter(
      ({ path, edits }) => edits > 0 && path !== file && isPlainPath(path) && !session.hasMentioned(fileNameOf(path)),
    )
    .sort((a, b) => b.edits - a.edits)
    .slice(0, MAX_FILES)
  const day = localDay(last.at)
  const othersText = others.length > 0 ? `, together with ${others.map(({ path }) => path).join(", ")}` : ""
  const titleText = last.title !== undefined ? ` "${last.title.slice(0, 100)}"` : ""
  return [
    {
      kind: "conversation",
      key: `conversation:${last.source}:${last.root}`,
      title: `${fileNameOf(file)} was last edited in a conversation on ${day}${titleText}`,
      summary: `+${last.added} −${last.removed}${othersText}.`,
      reason: `That conversation is the last one that edited ${file}.`,
      ref: formatRef({ source: last.source, id: last.id, number: last.last_number }),
      file,
      names: others.map(({ path }) => fileNameOf(path)),
      features: {
        visits: Math.log1p(visits.length),
        others: others.length,
        within_days: Math.exp(-Math.max(0, moment.at - last.at) / (2 * DAY_MS)),
        within_weeks: Math.exp(-Math.max(0, moment.at - last.at) / (14 * DAY_MS)),
        done: Math.log1p(session.files.length),
        size: Math.log1p(last.added + last.removed),
      },
    },
  ]
}
