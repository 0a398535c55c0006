import { DAY_MS, localDay } from "../../core/dates.ts"
import { quoteNaming } from "../../core/prose.ts"
import { formatRef } from "../../core/ref.ts"
import type { Moment } from "../../core/suggestion.ts"
import { fileNameOf, folderOf, isPlainPath, isTest, isTestOf, stemOf } from "../../learn/paths.ts"
import type { WorkedFilePath } from "../../store/knowledge/files.ts"
import { symbolOf } from "./code.ts"
import { beginningOf, type Candidate, type Finder, type Session, type Sources, speakerName } from "./finder.ts"

/** The maximum number of conversations to consider. Older ones say little about how a file is worked on now. */
const MAX_CONVERSATIONS = 60
const MAX_SESSION_FILES = 6
const MAX_CANDIDATES = 8
/** Added to a denominator, because one conversation that edited both files proves little if there are few conversations. */
const SMOOTHING = 1.5
const HOUR_MS = 3_600_000

export const findRelated: Finder = ({ knowledge }, moment, session) => {
  const { file } = moment
  if (file === undefined) return []
  const sources = { knowledge, project: moment.project }
  const about = togetherWith(sources, file)
  const branch = onBranch(sources, moment)
  const knownFiles = new Set([file, ...session.files])
  const evidence = [...new Set(session.files)]
    .filter((other) => other !== file)
    .slice(-MAX_SESSION_FILES)
    .map((other) => togetherWith(sources, other))
  const paths = new Set([...about.files.keys(), ...branch.files.keys()])
  // Whoever asks knows the test of the file, and wants to know what belongs to this file, not to the branch.
  const isRelated = ({ path, together, branch }: OtherFile) =>
    moment.event === "asked" ? together.edited > 0 && !isTestOf(path, file) : together.edited > 0 || branch.edited > 0
  return [...paths]
    .filter((path) => isPlainPath(path) && !knownFiles.has(path) && !session.hasMentioned(fileNameOf(path)))
    .map((path) => ({
      path,
      together: about.files.get(path) ?? { path, edited: 0, read: 0, at: 0 },
      branch: branch.files.get(path) ?? { path, edited: 0, read: 0, at: 0 },
    }))
    .filter(isRelated)
    .sort((a, b) => b.branch.edited + b.together.edited - a.branch.edited - a.together.edited)
    .slice(0, MAX_CANDIDATES)
    .map((other) => relatedCandidate(file, other, { about, branch, evidence }, moment, session))
}

/** Counts how many conversations on this branch edited or read each file. Returns nothing for the main branch. */
function onBranch({ knowledge, project }: Sources & { project: string }, { branch, session }: Moment): FileContext {
  const files = new Map<string, TogetherCounts>()
  if (branch === undefined || /^(?:main|master|trunk|develop|HEAD)$/.test(branch)) return { conversations: 0, files }
  const roots = knowledge.files.rootsOnBranch(project, branch, MAX_CONVERSATIONS).filter(({ root }) => root !== session)
  for (const worked of knowledge.files.filesWorkedOn(project, roots)) countFile(files, worked)
  return { conversations: roots.length, files }
}

type TogetherCounts = { path: string; edited: number; read: number; at: number }
type FileContext = { conversations: number; files: Map<string, TogetherCounts> }

function togetherWith({ knowledge, project }: Sources & { project: string }, file: string): FileContext {
  const visits = knowledge.files.visitsTo(project, file, MAX_CONVERSATIONS).filter(({ edits }) => edits > 0)
  const roots = [...new Map(visits.map(({ source, root }) => [`${source}:${root}`, { source, root }])).values()]
  const files = new Map<string, TogetherCounts>()
  for (const worked of knowledge.files.filesWorkedOn(project, roots)) if (worked.path !== file) countFile(files, worked)
  return { conversations: roots.length, files }
}

function countFile(files: Map<string, TogetherCounts>, { path, edits, at }: WorkedFilePath): void {
  const sum = files.get(path) ?? { path, edited: 0, read: 0, at: 0 }
  if (edits > 0) {
    sum.edited++
    sum.at = Math.max(sum.at, at)
  } else sum.read++
  files.set(path, sum)
}

type OtherFile = { path: string; together: TogetherCounts; branch: TogetherCounts }
type KnownWork = { about: FileContext; branch: FileContext; evidence: FileContext[] }

function relatedCandidate(
  file: string,
  { path, together, branch }: OtherFile,
  known: KnownWork,
  moment: Moment,
  session: Session,
): Candidate {
  const at = Math.max(together.at, branch.at)
  const hours = Math.max(0, moment.at - at) / HOUR_MS
  const shares = known.evidence.map(
    ({ conversations, files }) => (files.get(path)?.edited ?? 0) / (conversations + SMOOTHING),
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
        ? `${fileNameOf(path)} was edited on this branch, where ${fileNameOf(file)} is being edited now.`
        : `${fileNameOf(file)} and ${fileNameOf(path)} were changed together ${timesText(together.edited)}, last on ${day}.`,
    file: path,
    names: [fileNameOf(path)],
    features: {
      together: together.edited / (conversationCount + SMOOTHING),
      // A conversation that edited the other file counts here too, because an edit is never weaker evidence than a read.
      touched_together: (together.edited + together.read) / (conversationCount + SMOOTHING),
      branch: branch.edited / (known.branch.conversations + SMOOTHING),
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

function timesText(count: number): string {
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
const MAX_TITLE_LENGTH = 80
const MAX_FILES = 3

/** Finds the last conversation that edited this file, or on request the file that defines this symbol. */
export const findConversation: Finder = ({ knowledge }, moment, session) => {
  const file = moment.file ?? (moment.event === "asked" ? symbolOf(knowledge, moment)?.path : undefined)
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
  const title = moment.event === "asked" ? beginningOf(last.title ?? "", MAX_TITLE_LENGTH) : last.title?.slice(0, 100)
  const titleText = title ? ` "${title}"` : ""
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

/** Finds the conversation that says most about this symbol. The caller finds the candidates in the search index. */
export const findConversationNaming: Finder = ({ conversations = [] }, moment) => {
  const { symbol } = moment
  if (symbol === undefined) return []
  const [best] = conversations
    .map((conversation) => ({ conversation, quote: quoteNaming(conversation.text, [symbol])?.sentence }))
    .sort((a, b) => Number(b.quote !== undefined) - Number(a.quote !== undefined))
  if (!best) return []
  const { ref, key, title, at, by, imported_from } = best.conversation
  const dayText = at === undefined ? "" : ` on ${localDay(at)}`
  const speaker = by === "person" ? speakerName(imported_from) : "The agent"
  return [
    {
      kind: "conversation",
      key,
      title: `${title === undefined ? "A conversation" : `"${beginningOf(title, MAX_TITLE_LENGTH)}"`} named ${symbol}${dayText}`,
      summary: best.quote === undefined ? "" : `${speaker}: "${best.quote}"`,
      reason: `Of the conversations that name ${symbol}, it matches best.`,
      ref,
      symbol,
      names: [],
      features: {},
    },
  ]
}
