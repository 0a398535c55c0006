import { createHash } from "node:crypto"
import { callInputs } from "../../core/call-words.ts"
import type { Effect } from "../../core/conversation.ts"
import { findPlan } from "../../core/plan.ts"
import { formatRef } from "../../core/ref.ts"
import { parseCommitMarks, subjectKey } from "../../git/commit-marks.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { CommitDecision, StoredDecision } from "../../store/knowledge/decisions.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import { pathBelowAny, pathRootsOf } from "../paths.ts"
import { findDecidingAnswers } from "./answers.ts"
import { decisionsInMessage, isAssent, recapsIn, retractionsIn } from "./decided.ts"
import { currentNote } from "./noted.ts"
import { decisionInPlan } from "./planned.ts"
import { subjectOf } from "./subject.ts"
import { findReversals } from "./supersede.ts"

// Finds the lasting choices in a conversation, in a project's documents and in its commits.

export type Decision = StoredDecision

const MAX_FILES = 20
const MAX_SYMBOLS = 20
const MAX_QUOTE_LENGTH = 600
const MAX_BEFORE_LENGTH = 200

type StatedDecision = Pick<Decision, "kind" | "quote" | "origin"> & { text: string }

/** Returns every decision of a conversation once, in order. Ignores abandoned, copied and superseded messages. */
export function decisionsIn(
  row: Pick<ConversationRow, "ref" | "kind" | "project" | "folders">,
  messages: StoredMessage[],
): Decision[] {
  const currentMessages = messages.filter(({ abandoned, superseded, copied }) => !abandoned && !superseded && !copied)
  if (row.kind === "document") return decisionsInRecord(row, currentMessages)
  const calls = callInputs(currentMessages)
  const edited = editedAfter(currentMessages)
  const byWords = new Map<string, Decision>()
  let last: Decision | undefined
  let agentsText = ""
  for (const [i, message] of currentMessages.entries()) {
    const stated = [
      ...statedInCommits(message),
      ...(row.kind === "person" ? statedIn(message, { calls, agentsText, last }) : []),
      ...(row.kind === "person" ? recapsAt(currentMessages, i) : []),
    ]
    agentsText = agentsTextIn(message) ?? agentsText
    for (const statement of stated) {
      const decision = decisionOf(row, message, statement, edited[i]!)
      const words = normaliseText(decision.quote)
      const earlier = byWords.get(words)
      if (words === "" || (earlier && earlier === last)) continue
      last = earlier ? combineStatements(earlier, decision) : decision
      byWords.delete(words)
      byWords.set(words, last)
    }
  }
  return [...byWords.values()].map((decision) => withCommit(decision, currentMessages))
}

/** Adds the subject of the next commit after the decision. If the decision has no files, nothing connects a commit with it. */
function withCommit(decision: Decision, currentMessages: StoredMessage[]): Decision {
  if (decision.files.length === 0 || decision.kind === "breaking" || decision.kind === "revert") return decision
  const nextCommit = currentMessages
    .filter(({ number }) => number > decision.number)
    .flatMap(({ effects }) => effects.filter((effect) => effect.type === "commit"))[0]
  return nextCommit === undefined ? decision : { ...decision, committed: subjectKey(nextCommit.subject) }
}

function agentsTextIn({ role, parts }: StoredMessage): string | undefined {
  const texts = parts.flatMap((part) => (part.type === "text" && part.origin === "agent" ? part.text : []))
  return role === "assistant" && texts.length > 0 ? texts.join("\n") : undefined
}

/** The agent's summaries in a message of what the person had settled. */
function recapsAt(messages: readonly StoredMessage[], i: number): StatedDecision[] {
  const text = agentsTextIn(messages[i]!)
  const quotes = text === undefined ? [] : recapsIn(text)
  if (quotes.length === 0) return []
  const before = messages.slice(0, i).findLast(isTyped)
  const after = messages.slice(i + 1).find(isTyped)
  if (!before || !isAssent(typedIn(before), after && typedIn(after))) return []
  return quotes.map((quote) => ({ kind: "said", quote, origin: "agent", text: text! }))
}

function isTyped({ parts }: StoredMessage): boolean {
  return parts.some(({ type, origin }) => type === "text" && origin === "person")
}

function typedIn({ parts }: StoredMessage): string {
  return parts.flatMap((part) => (part.type === "text" && part.origin === "person" ? part.text : [])).join("\n")
}

/** Combines two statements of one decision. Keeps the latest statement, because the opposite may have been decided in between. */
function combineStatements(earlier: Decision, latest: Decision): Decision {
  return { ...latest, files: [...new Set([...latest.files, ...earlier.files])].slice(0, MAX_FILES) }
}

/** The context in which a message was written: earlier calls, the agent's last text, the last decision. */
type MessageContext = { calls: Map<string, string>; agentsText: string; last: Decision | undefined }

function statedIn(message: StoredMessage, { calls, agentsText, last }: MessageContext): StatedDecision[] {
  return message.parts.flatMap((part): StatedDecision[] => {
    if (part.type === "tool_result")
      return [...statedInPlan(findPlan(part, calls)), ...findDecidingAnswers(part, calls)]
    if (part.type !== "text") return []
    if (part.origin === "agent" && message.role === "user") return statedInPlan(findPlan(part))
    if (part.origin !== "person") return []
    const retractions = last === undefined ? [] : retractionsIn(part.text)
    return [
      ...decisionsInMessage(part.text, agentsText).map(
        (one): StatedDecision => ({ kind: "said", ...one, text: part.text }),
      ),
      ...retractions.map((quote): StatedDecision => quoteRetraction(last!, quote, part.text)),
      ...findDecidingAnswers(part, calls),
    ]
  })
}

/** Quotes "let's go back" together with the decision that it withdraws. */
function quoteRetraction({ quote: withdrawn, origin }: Decision, quote: string, text: string): StatedDecision {
  const [first = ""] = withdrawn.split("\n")
  return { kind: "said", quote: `${first.slice(0, MAX_BEFORE_LENGTH)} → ${quote}`, origin, text }
}

function statedInPlan(text: string | undefined): StatedDecision[] {
  const quote = decisionInPlan(text ?? "")
  return quote === undefined ? [] : [{ kind: "plan", quote, origin: "agent", text: text! }]
}

function statedInCommits({ effects }: StoredMessage): StatedDecision[] {
  return effects.flatMap((effect) => (effect.type === "commit" ? statedByCommit({ ...effect, body: "" }) : []))
}

/** Returns the decision in a note. Every note that the person wrote or confirmed counts as a decision. */
export function decisionInNote(
  row: Pick<ConversationRow, "ref" | "project" | "folders">,
  messages: StoredMessage[],
): Decision[] {
  const note = currentNote(messages)
  if (!note?.confirmed) return []
  const { message, quote, agent, text, files, rejects } = note
  const stated: StatedDecision = { kind: "note", quote, origin: agent === undefined ? "person" : "agent", text }
  const decision = decisionOf(row, message, stated, files)
  return [{ ...decision, subject: subjectOf(text), rejects }]
}

type Commit = { hash: string; subject: string; body: string; files: string[]; at?: number }

/** Finds breaking changes and reverts, including those of commits outside any conversation. */
export function decisionsInCommits(commits: Commit[]): CommitDecision[] {
  return commits.flatMap((commit) =>
    statedByCommit(commit).map(({ kind, quote }) => ({
      key: keyOf(`git:${commit.hash} ${quote}`),
      kind,
      quote: quote.slice(0, MAX_QUOTE_LENGTH),
      hash: commit.hash,
      at: commit.at,
      files: commit.files.slice(0, MAX_FILES),
      symbols: symbolsIn(quote),
      subject: subjectOf(quote),
      origin: "commit",
    })),
  )
}

/** The maximum number of breaking or reverting commits. Only the newest ones count. */
const MAX_COMMITS = 500

/** Updates the decisions of a project's commits after its git history was read. */
export function learnCommits(knowledge: Knowledge, project: string): void {
  const gitProject = knowledge.git.gitProject(project)
  if (!gitProject || gitProject.decided === gitProject.head) return
  const commits = knowledge.git.markedCommits(project, { limit: MAX_COMMITS }).map((commit) => ({
    ...commit,
    files: knowledge.git.filesOfCommit(project, commit.hash),
  }))
  knowledge.decisions.saveCommitDecisions(project, decisionsInCommits(commits.toReversed()), gitProject.head)
  knowledge.decisions.renewReversals(findReversals)
}

function statedByCommit({ subject, body }: { subject: string; body: string }): StatedDecision[] {
  const state = (kind: "breaking" | "revert", quote: string): StatedDecision[] => [
    { kind, quote, origin: "agent", text: `${subject}\n${body}` },
  ]
  const { breaking, reverts } = parseCommitMarks(subject, body)
  if (reverts) {
    const reason = body.split("\n").find((line) => line.trim() !== "" && !/^This reverts commit\b/.test(line))
    return state("revert", reason === undefined ? subject : `${subject}\n${reason.trim()}`)
  }
  if (breaking === undefined) return []
  return state("breaking", subject.includes(breaking) ? subject : `${subject}\n${breaking}`)
}

const ADR_PATH = /(?:^|\/)(?:adrs?|decisions?|decision-records?|architecture-decisions?)\/[^/]+$/i
const DECISION_HEADING = /^(?:\d[\d.]*\s+)?(?:decision(?: outcome)?|decided|we decided)$/i
const IN_FORCE = /\bstatus\b[\s:*_#-]{0,10}(?:accepted|approved|adopted|implemented)\b/i
const NOT_IN_FORCE = /\bstatus\b[\s:*_#-]{0,10}(?:proposed|draft|rejected|declined|deprecated)\b/i

/** Whether a document may be a decision record, judged by its path. Other documents are not read. */
export function mayBeDecisionRecord(path: string): boolean {
  return /(?:^|[/_-])(?:adrs?|decisions?|rfcs?|architecture)(?:[/_.-]|$)|(?:^|\/)\d{3,5}-[^/]+$/i.test(path)
}

/** Reads an architecture decision record: its title, and the first paragraph below the heading "Decision". */
function decisionsInRecord(
  row: Pick<ConversationRow, "ref" | "kind" | "project" | "folders">,
  sections: StoredMessage[],
): Decision[] {
  const textParts = sections.flatMap((message) =>
    message.parts.flatMap((part) => (part.type === "text" ? [{ message, part, mark: part.section }] : [])),
  )
  const beginnings = textParts.map(({ part, mark }) => `${mark?.name ?? ""}\n${part.text.slice(0, 500)}`).join("\n")
  if (
    row.project === undefined ||
    NOT_IN_FORCE.test(beginnings) ||
    !(IN_FORCE.test(beginnings) || ADR_PATH.test(row.ref.id))
  )
    return []
  const decisionSection = textParts.find(
    ({ mark }) => mark !== undefined && DECISION_HEADING.test(mark.headings.at(-1) ?? mark.name),
  )
  // A document from the web decides nothing about the project.
  if (decisionSection === undefined || decisionSection.part.origin === "web") return []
  const title = decisionSection.mark?.headings[0]
  const text = firstParagraph(decisionSection.part.text, decisionSection.mark?.headings.at(-1))
  const quote = title === undefined || DECISION_HEADING.test(title) ? text : `${title}\n${text}`
  return text === ""
    ? []
    : [
        decisionOf(
          row,
          decisionSection.message,
          { kind: "adr", quote, origin: "document", text: decisionSection.part.text },
          [],
        ),
      ]
}

function firstParagraph(text: string, heading: string | undefined): string {
  const lines = text.split("\n").map((line) => line.trim())
  const start = lines.findIndex((line) => line !== "" && line.replace(/^#+\s*/, "") !== heading)
  if (start < 0) return ""
  const end = lines.indexOf("", start)
  return lines.slice(start, end < 0 ? undefined : end).join(" ")
}

function decisionOf(
  row: Pick<ConversationRow, "ref" | "project" | "folders">,
  { number, at }: StoredMessage,
  { kind, quote, origin, text }: StatedDecision,
  edited: string[],
): Decision {
  const roots = pathRootsOf(row)
  const toProjectPath = (path: string) => (row.project === undefined ? path : pathBelowAny(roots, path))
  const files = [...pathsIn(text), ...edited].map(toProjectPath).filter((path) => path !== undefined)
  return {
    key: keyOf(`${formatRef({ ...row.ref, number })} ${quote}`),
    kind,
    quote: quote.slice(0, MAX_QUOTE_LENGTH),
    number,
    at,
    files: [...new Set(files)].slice(0, MAX_FILES),
    symbols: symbolsIn(text),
    subject: subjectOf(kind === "plan" ? quote.split("\n", 1)[0]! : quote),
    origin,
  }
}

function keyOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16)
}

export function normaliseText(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim().toLowerCase()
}

const MAX_CHARS = 20_000
const PATH = /(?<![\w/.:@-])(?:\.{0,2}\/)?(?:[\w@.-]{1,80}\/){1,20}[\w@.-]{1,80}\.[A-Za-z]\w{0,7}(?![\w/])/g

function pathsIn(text: string): string[] {
  return [...new Set(text.slice(0, MAX_CHARS).match(PATH) ?? [])]
}

const SYMBOL =
  /`([A-Za-z_$][\w$.]{2,79})(?:\(\))?`|\b([A-Za-z]\w{0,60}[a-z0-9][A-Z]\w{0,60}|[A-Za-z]\w{0,60}_\w{1,60})\b|\b([A-Za-z]\w{2,60})\(\)/g

function symbolsIn(text: string): string[] {
  const symbols = [...text.slice(0, MAX_CHARS).matchAll(SYMBOL)].map(([, a, b, c]) => (a ?? b ?? c)!)
  return [...new Set(symbols)].slice(0, MAX_SYMBOLS)
}

/** For each message, returns the files that were edited after it until the person wrote again. */
function editedAfter(messages: StoredMessage[]): string[][] {
  const filesAfter: string[][] = new Array(messages.length)
  let edited: string[] = []
  for (let i = messages.length - 1; i >= 0; i--) {
    const { effects, parts } = messages[i]!
    edited = [...new Set([...effects.flatMap(editedPath), ...edited])].slice(0, MAX_FILES)
    filesAfter[i] = edited
    if (parts.some((part) => part.type === "text" && part.origin === "person")) edited = []
  }
  return filesAfter
}

function editedPath(effect: Effect): string[] {
  return effect.type === "file" && effect.action === "edited" ? [effect.path] : []
}
