import { callInputs } from "../core/call-words.ts"
import type { Conversation, Message, Part, Title } from "../core/conversation.ts"
import { findPlan } from "../core/plan.ts"

const MAX_TITLE = 120
/** The number of prompts to examine. Later prompts are about details. */
const MAX_PROMPTS = 12
/** The number of characters to examine in each prompt. */
const MAX_PROMPT_CHARS = 2_000
/** The minimum number of informative words in a title. A title with fewer could describe anything. */
const MIN_WORDS = 2
/** The minimum number of words in a vague prompt that becomes the title. Anything shorter is likely an exclamation. */
const MIN_SENTENCE_WORDS = 4
/** The number of sentences of a prompt to examine. A prompt that takes longer to come to the point began with another subject. */
const MAX_SENTENCES = 4

/**
 * Builds a title for a conversation that neither the agent nor the person named. Uses the first of these that exists: the heading
 * of the last approved plan, the first commit's subject, unless the commits are about several subjects, the first informative prompt,
 * the branch's topic, or a vague prompt or answer. A subagent's title is its task. Titles such as "commit this" or "yes" are a last resort.
 */
export function conversationTitle(
  conversation: Pick<Conversation, "kind" | "messages" | "git_branch">,
): Title | undefined {
  const { kind, git_branch } = conversation
  const current = conversation.messages.filter(({ abandoned }) => !abandoned)
  const messages = current.length > 0 ? current : conversation.messages
  const prompts = promptsIn(messages)
  if (kind === "subagent") return title((prompts.find(isFromAgent) ?? prompts[0])?.text, "first_prompt")
  const planHeading = plansIn(messages).flatMap(headingOf).at(-1)
  if (planHeading !== undefined) return title(planHeading, "plan")
  const topic = topicOf(git_branch)
  const subjects = messages.flatMap(({ effects = [] }) => effects.flatMap(subjectOf))
  const [subject] = subjects
  const texts = prompts.filter(({ text }) => !/^\/\S+$/.test(text)).map(({ text }) => text)
  const [informativeText] = texts.slice(0, MAX_PROMPTS).flatMap(informativePart)
  const isRequestBetter = areSeveralSubjects(subjects) && informativeText !== undefined && !isChore(informativeText)
  if (subject !== undefined && !isRequestBetter) return title(joinTitle(subject, topic), "commit")
  if (informativeText !== undefined) return title(joinTitle(informativeText, topic), "first_prompt")
  if (topic !== undefined) return title([topic, ...texts.slice(0, 1)].join(": "), "first_prompt")
  const vaguePrompt = texts.find(
    (text) => wordsOf(text).length >= MIN_SENTENCE_WORDS && informativeWords(text).length > 0,
  )
  return title(vaguePrompt ?? firstAnswer(messages) ?? prompts[0]?.text, "first_prompt")
}

/** Matches a text that begins with an ordinary word in lower case, and not with the name of a program. */
const PROSE =
  /^(?!(?:npm|npx|pnpm|yarn|pip|git|gh|brew|docker|kubectl|curl|ssh|sudo|dex)\b)\p{Ll}[\p{Ll}']*(?=[\s,?!]|$)/u

/**
 * True for a prompt that an agent wrote. A subagent's conversation may also have a copy of what the person said to its parent.
 */
const isFromAgent = ({ origin }: Part) => origin === "agent"

function title(text: string | undefined, from: Title["from"]): Title | undefined {
  const words = oneLine(text ?? "").replace(/^[-*] /, "")
  const line = from === "first_prompt" && PROSE.test(words) ? words[0]!.toUpperCase() + words.slice(1) : words
  if (line === "") return undefined
  return { text: line.length > MAX_TITLE ? `${line.slice(0, MAX_TITLE - 1)}…` : line, from }
}

/** Returns the beginnings of the prompts. Most are from the person, but plans and subagents' tasks are from an agent. */
function promptsIn(messages: Message[]): Part[] {
  const texts = messages
    .filter(({ role }) => role === "user")
    .flatMap(({ parts }) => parts.filter((part) => part.type === "text" && part.origin !== "injected"))
  return texts
    .map((part) => ({ ...part, text: part.text.slice(0, MAX_PROMPT_CHARS).trim() }))
    .filter(({ text }) => text !== "")
}

function plansIn(messages: Message[]): string[] {
  const calls = callInputs(messages)
  return messages.flatMap(({ parts }) => parts.flatMap((part) => findPlan(part, calls) ?? []))
}

/** Returns the heading of a plan, without the word "plan", if the rest is informative. */
function headingOf(text: string): string[] {
  const [, heading = ""] = /^#{1,3}[ \t]+(\S.*)$/m.exec(text) ?? []
  const topicHeading = heading.replace(/^(?:\w+ )?plan(?: \w+)?[:\s—–-]+/i, "")
  return informativeWords(topicHeading).length > 0 ? [topicHeading] : []
}

function subjectOf(effect: NonNullable<Message["effects"]>[number]): string[] {
  if (effect.type !== "commit" || /^merge\b/i.test(effect.subject)) return []
  return informativeWords(effect.subject).length >= MIN_WORDS ? [effect.subject] : []
}

/** True if a later commit has no informative word of the first one's subject: then the request says better what it was about. */
function areSeveralSubjects([first = "", ...others]: string[]): boolean {
  const words = new Set(informativeWords(first))
  return others.some((other) => !informativeWords(other).some((word) => words.has(word)))
}

/** True if the beginning of a prompt is about commits and reviews, which says less than any commit's subject. */
function isChore(text: string): boolean {
  return /\b(?:rebas\w+|merg\w+|commits?|branch(?:es)?|push\w*|PRs?|pull|review\w*)\b/i.test(text.slice(0, MAX_TITLE))
}

/** Lines that programs print and people paste: prompts of shells, items of a report, test results, licences and the like. */
const PASTED_LINE =
  /^\s*(?:[❯➜$%•✓✗⎿│└├╭╰]\s|---\s|(?:low|medium|high|critical) severity\s*$|spdx-|(?:copyright|©)\s|licensed under\b)|\bEULA\b|\ball rights reserved\b|\byou agree (?:to|with)\b/i

/** Leaves out pasted lines, and the command at the beginning, if anything informative remains. */
function ownWords(text: string): string {
  const own = text
    .replace(/^\/[\w:-]+\s+/, "")
    .split("\n")
    .filter((line) => !PASTED_LINE.test(line))
    .join("\n")
  return informativeWords(own).length >= MIN_WORDS ? own : text
}

/** Returns the text from its first informative sentence on, or nothing if that sentence comes too late. */
function informativePart(text: string): string[] {
  const sentences = oneLine(ownWords(text)).split(/(?<=[.?!:])\s+/)
  const firstInformative = sentences.findIndex(
    (sentence) => informativeWords(sentence.slice(0, MAX_TITLE)).length >= MIN_WORDS,
  )
  return firstInformative === -1 || firstInformative >= MAX_SENTENCES
    ? []
    : [sentences.slice(firstInformative).join(" ")]
}

/** The agent's first informative answer, for a conversation that begins with a greeting. */
function firstAnswer(messages: Message[]): string | undefined {
  const texts = messages
    .filter(({ role }) => role === "assistant")
    .flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "text" ? [part.text.slice(0, MAX_PROMPT_CHARS)] : [])),
    )
  return texts.flatMap(informativePart)[0]
}

/**
 * The topic in a branch name: `alice/ent-221-better-state` is about "ENT-221 better state". Undefined for a common branch name.
 */
function topicOf(branch: string | undefined): string | undefined {
  if (branch === undefined || /^(?:main|master|trunk|dev|develop|development|HEAD)$/.test(branch)) return undefined
  const name = branch.slice(branch.lastIndexOf("/") + 1).replace(/^\d{6,8}[-_]/, "")
  const spacedName = name.replaceAll(/([a-z])([A-Z])/g, "$1 $2").replaceAll(/[-_\s]+/g, " ")
  const topic = spacedName.replace(
    /^([a-z]{2,6}) (\d{1,6})\b/i,
    (_, key: string, number) => `${key.toUpperCase()}-${number}`,
  )
  return informativeWords(topic).length > 0 ? topic.trim() : undefined
}

function joinTitle(text: string, topic: string | undefined): string {
  const line = oneLine(text)
  if (topic === undefined) return line
  const words = new Set(wordsOf(line.slice(0, MAX_TITLE)))
  if (informativeWords(topic).every((word) => words.has(word))) return line
  const room = MAX_TITLE - topic.length - 3
  const beginning = line.length > room ? `${line.slice(0, Math.max(40, room - 1)).trimEnd()}…` : line
  return `${beginning} · ${topic}`
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim()
}

/** Words that show what a text is about. URLs, paths and hashes do not count. */
function informativeWords(text: string): string[] {
  const prose = text.replaceAll(/\w+:\/\/\S+|(?:~|\.{1,2})?(?:\/[\w.@-]+){2,}\/?|\b[0-9a-f]{7,}\b/g, " ")
  return [
    ...new Set(wordsOf(prose).filter((word) => word.length > 2 && !EVERYDAY_WORDS.has(word) && !/^\d+$/.test(word))),
  ]
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? []
}

/** Words that people use in prompts for any kind of work. */
const EVERYDAY_WORDS = new Set(
  `about above add added address after again all also always and another any anything apply are around ask back been
  before being below best better both branch branches broken bug bugbot build but can case change changed changes check
  checked clear close code comment comments commit commits complete conflict conflicts continue could create current
  currently did does doing done don't draft each else error errors even ever everything explain fail failed failing fails
  feature feedback few file files find fine first fix fixed for from full further get getting give going good got had has
  have having hello help her here hey how i'm implement implementation improve instead into issue issues it's its just
  keep know last latest let let's line lines lint linting list little local look looking looks main make making many may
  maybe mean merge method might more most much need needs new next not nothing now off okay old once one only open origin
  other our out over own parent part pass passing please plan point possible problem properly prs pull push question quick
  quickly quite read ready really rebase remote remove request resolve results review reviewed right run running same say
  see seeing seem seems send set shall she should show showing since small some someone something sorry sort sounds start
  started state states still stuff such summary sure take task tell test tests than thank thanks that that's the their
  them then there these they thing things think this those thoughts through time together too took tried true try trying
  two under understand until update updated use used using valid very want was way we're well were what what's when where
  which while who why will with work working works would write wrong yeah yes yet you your`.split(/\s+/),
)
