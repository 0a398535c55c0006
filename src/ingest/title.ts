import { callInputs } from "../core/call-words.ts"
import type { Conversation, Message, Part, Title } from "../core/conversation.ts"
import { findPlan } from "../core/plan.ts"

const MAX_TITLE = 120
/** How many prompts are examined. Later prompts are about details. */
const MAX_PROMPTS = 12
/** How many characters of each prompt are examined. */
const MAX_PROMPT_CHARS = 2_000
/** The fewest informative words of a title. With fewer, it could fit anything. */
const MIN_WORDS = 2
/** The fewest words of a sentence. Fewer are an exclamation. */
const MIN_SENTENCE_WORDS = 4
/** How many sentences of a prompt are examined. A prompt that comes to the point later begins with another subject. */
const MAX_SENTENCES = 4

/**
 * Builds a title for a conversation that neither the agent nor the person named: the heading of the last approved plan, the first
 * commit's subject, or the first informative prompt, with the name of its branch if that adds something. It is never "commit
 * this" or "yes".
 */
export function conversationTitle(
  conversation: Pick<Conversation, "kind" | "messages" | "git_branch">,
): Title | undefined {
  const { kind, git_branch } = conversation
  const current = conversation.messages.filter(({ abandoned }) => !abandoned)
  const messages = current.length > 0 ? current : conversation.messages
  const prompts = promptsIn(messages)
  if (kind === "subagent") return title((prompts.find(isFromAgent) ?? prompts[0])?.text, "first_prompt")
  const heading = plansIn(messages).flatMap(headingOf).at(-1)
  if (heading !== undefined) return title(heading, "plan")
  const topic = topicOf(git_branch)
  const [subject] = messages.flatMap(({ effects = [] }) => effects.flatMap(subjectOf))
  if (subject !== undefined) return title(joinTitle(subject, topic), "commit")
  const texts = prompts.filter(({ text }) => !/^\/\S+$/.test(text)).map(({ text }) => text)
  const [informativeText] = texts.slice(0, MAX_PROMPTS).flatMap(informativePart)
  if (informativeText !== undefined) return title(joinTitle(informativeText, topic), "first_prompt")
  if (topic !== undefined) return title([topic, ...texts.slice(0, 1)].join(": "), "first_prompt")
  const vaguePrompt = texts.find(
    (text) => wordsOf(text).length >= MIN_SENTENCE_WORDS && informativeWords(text).length > 0,
  )
  return title(vaguePrompt ?? firstAnswer(messages) ?? prompts[0]?.text, "first_prompt")
}

/** Whether the agent wrote a prompt. A subagent's conversation may also have a copy of what the person said to its parent. */
const isFromAgent = ({ origin }: Part) => origin === "agent"

function title(text: string | undefined, from: Title["from"]): Title | undefined {
  const line = oneLine(text ?? "")
  if (line === "") return undefined
  return { text: line.length > MAX_TITLE ? `${line.slice(0, MAX_TITLE - 1)}…` : line, from }
}

/** The prompts: from the person or, for a plan or a subagent's task, from an agent. */
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

/** The heading of a plan, without the word "plan". */
function headingOf(text: string): string[] {
  const [, heading = ""] = /^#{1,3}[ \t]+(\S.*)$/m.exec(text) ?? []
  const topicHeading = heading.replace(/^(?:\w+ )?plan(?: \w+)?[:\s—–-]+/i, "")
  return informativeWords(topicHeading).length > 0 ? [topicHeading] : []
}

function subjectOf(effect: NonNullable<Message["effects"]>[number]): string[] {
  if (effect.type !== "commit" || /^merge\b/i.test(effect.subject)) return []
  return informativeWords(effect.subject).length >= MIN_WORDS ? [effect.subject] : []
}

/** Returns a prompt from its first informative sentence on. */
function informativePart(text: string): string[] {
  const sentences = oneLine(text).split(/(?<=[.?!:])\s+/)
  const first = sentences.findIndex((sentence) => informativeWords(sentence.slice(0, MAX_TITLE)).length >= MIN_WORDS)
  return first === -1 || first >= MAX_SENTENCES ? [] : [sentences.slice(first).join(" ")]
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
  const words = name.replaceAll(/([a-z])([A-Z])/g, "$1 $2").replaceAll(/[-_\s]+/g, " ")
  const topic = words.replace(
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

/** Words that people use with every agent for any work. */
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
