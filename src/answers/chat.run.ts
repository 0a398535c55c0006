import { withoutUndefined } from "../core/defined.ts"
import { DexError } from "../core/error.ts"
import { estimateTokens } from "../core/tokens.ts"
import type { Model, ModelMessage, ModelRequest } from "../llm/model.ts"
import { usageBetween } from "../llm/reply.ts"
import { redactText } from "../redact/redact.ts"
import { seconds } from "../render/words.ts"
import { parseQuery } from "../search/query.ts"
import type { Dex } from "../tools/context.ts"
import {
  type AskAnswer,
  buildModelAnswer,
  buildQuotedAnswer,
  checkAnswer,
  finishAnswer,
  firstPassages,
  modelUsageOf,
  NO_MODEL,
} from "./ask.run.ts"
import { storeChat } from "./chat-keep.ts"
import { type CheckedAnswer, NONE_DROPPED, settledLength } from "./cited.ts"
import { openLibrary, type PassageLibrary } from "./library.ts"
import { type Caps, DEFAULT_CAPS, type LoopResult, runLoop, type Step } from "./loop.ts"
import type { AnswerScope } from "./passage-source.ts"
import type { Passage } from "./passages.ts"

export type ChatInput = {
  query?: string
  interactive?: boolean
  use_case?: string
  collections?: string[]
  no_global?: boolean
  model?: string
  temperature?: number
  opencode?: boolean
  verbose?: boolean
}

export type ChatOptions = {
  scope: AnswerScope
  /** Undefined if no model is set up; every answer then consists of quotes. */
  model: Model | undefined
  use_case?: string
  caps?: Caps
  /** How many tokens of earlier exchanges a question may include. */
  historyTokens?: number
}

/** Called while an answer arrives. A sentence is shown once it is complete and its sources support it. */
type ChatEvents = {
  onSentence?: (sentence: string) => void
  onStep?: (step: Step) => void
  signal?: AbortSignal
}

export type Turn = AskAnswer & {
  /** True if the person stopped the answer. Sentences that were already shown remain. */
  stopped?: true
  /** How many of the oldest exchanges the model no longer sees. Set only in the first turn in which this happens. */
  forgot?: number
}

/** A series of questions. A passage has the same number in all of them. */
export type Chat = {
  ask(question: string, events?: ChatEvents): Promise<Turn>
  useCase(): string | undefined
  setUseCase(text: string | undefined): void
  /** Makes the next question start without the earlier ones. */
  clear(): void
}

type Exchange = { question: string; answer: string; cited: Passage[] }

const HISTORY_TOKENS = 4_000
const QUOTES_TOKENS = 600
/** For a model's answer, which was limited when it was requested. Sentences that were already shown cannot be removed. */
const NO_LIMIT = Number.POSITIVE_INFINITY

export async function openChat(dex: Dex, options: ChatOptions): Promise<Chat> {
  const library = await openLibrary(dex, options.scope)
  let useCase = options.use_case
  let history: Exchange[] = []
  let hasForgotten = false
  /** The query of the last question. */
  let lastQuery: string | undefined

  const ask = async (question: string, events: ChatEvents = {}): Promise<Turn> => {
    const { signal, onStep } = events
    const query = lastQuery === undefined ? question : await followUpQuery(library, question, lastQuery)
    lastQuery = query
    const statements = await library.statements(query)
    onStep?.({ call: `search ${query}`, outcome: `${statements.length} found` })
    const emptyAnswer = (rest: object = {}) =>
      finishAnswer({ query, max_tokens: QUOTES_TOKENS }, library, [], statements, { ...STOPPED_RUN, ...rest })
    if (signal?.aborted) return { ...(await emptyAnswer()), stopped: true }
    if (!options.model)
      return buildQuotedAnswer({ query, max_tokens: QUOTES_TOKENS }, library, statements, {
        extractive: true,
        notes: [NO_MODEL],
      })
    const sentences = createSentences(
      (text) => checkAnswer(text, library),
      (sentence) => events.onSentence?.(sentence),
    )
    const forgottenCount = trimHistory()
    const passagesFound = await firstPassages(library, query, statements)
    const model = streamSentences(options.model, sentences, (why, waitMs) =>
      onStep?.({ call: `ask the model again in ${seconds(waitMs)}`, outcome: why }),
    )
    const run = await partialIfStopped(signal, (onLoopStep) =>
      runLoop(model, library, {
        question,
        firstPassages: [...passagesFound, ...lastCitedPassages(history, passagesFound)],
        caps: options.caps ?? DEFAULT_CAPS,
        history: history.flatMap(messagesOf),
        onStep: (step) => {
          onLoopStep(step)
          onStep?.(step)
        },
        use_case: useCase,
        signal,
      }),
    )
    const checked = sentences.checked()
    const hasAnswer = checked.kept.length > 0
    const answer =
      run.stoppedByPerson && !hasAnswer
        ? await emptyAnswer({ used: modelUsageOf(model, run.steps.length) })
        : await buildModelAnswer(
            { query, max_tokens: hasAnswer ? NO_LIMIT : QUOTES_TOKENS },
            library,
            statements,
            model,
            run,
            checked,
          )
    if (hasAnswer)
      history.push({
        question: redactText(question),
        answer: answer.answer,
        cited: answer.sources.flatMap(({ n }) => library.passages.get(n) ?? []),
      })
    const notes = [answer.note, sentences.breaks() > 0 ? BROKEN_NOTE : undefined].filter((note) => note !== undefined)
    return withoutUndefined({
      ...answer,
      note: notes.length > 0 ? notes.join(" ") : undefined,
      stopped: run.stoppedByPerson,
      forgot: forgottenCount > 0 ? forgottenCount : undefined,
    })
  }

  /** Drops the oldest exchanges until the rest fits. Returns their number, but only once per chat; later it returns 0. */
  const trimHistory = (): number => {
    const lengthBefore = history.length
    while (history.length > 0 && tokensOf(history) > (options.historyTokens ?? HISTORY_TOKENS)) history.shift()
    const droppedCount = lengthBefore - history.length
    if (droppedCount === 0 || hasForgotten) return 0
    hasForgotten = true
    return droppedCount
  }

  return {
    ask,
    useCase: () => useCase,
    setUseCase: (text) => {
      useCase = text
    },
    clear: () => {
      history = []
      lastQuery = undefined
    },
  }
}

const REFERS_BACK =
  /\b(?:what|how) about\b|\b(?:it|its|that|those|this|these|they|them|their|there|one|ones|same|instead)\b|^\W*(?:and|but|so|or|then)\b|^\W*(?:why|how|where|when|who)(?: not)?\W*$/i
/** How many words of the last question are added to one that refers to it. */
const MAX_ADDED_WORDS = 3

/** The query of a question: one such as "and why?" is searched for with the rarest words of the last one. */
async function followUpQuery(library: PassageLibrary, question: string, lastQuery: string): Promise<string> {
  const words = parseQuery(question).words
  if (words.length > 0 && !REFERS_BACK.test(question)) return question
  const rarest = await library.rarestWords(lastQuery)
  const added = rarest.filter((word) => !words.includes(word)).slice(0, MAX_ADDED_WORDS)
  return [question, ...added].join(" ")
}

const BROKEN_NOTE = "The connection broke, and the model started again."
const STOPPED_RUN = { extractive: false, partial: true, notes: ["You stopped it."] }

/** Passes the model's text to `sentences` as it arrives. `used` counts only this question's tokens. */
function streamSentences(model: Model, sentences: Sentences, onRetry: ModelRequest["onRetry"]): Model {
  const usedBefore = model.used()
  return {
    id: model.id,
    async reply(request) {
      try {
        const reply = await model.reply({ ...request, onText: sentences.append, onReset: sentences.restart, onRetry })
        sentences.end(reply.calls.length === 0)
        return reply
      } catch (error) {
        sentences.interrupt()
        throw error
      }
    },
    used() {
      return usageBetween(model.used(), usedBefore)
    },
  }
}

type PartialRun = LoopResult & { stoppedByPerson?: true }

/** If the person stops the run, returns a partial result instead of throwing. */
async function partialIfStopped(
  signal: AbortSignal | undefined,
  run: (onStep: (step: Step) => void) => Promise<LoopResult>,
): Promise<PartialRun> {
  const steps: Step[] = []
  try {
    return await run((step) => steps.push(step))
  } catch (error) {
    if (!signal?.aborted) throw error
    return { text: "", steps, stopped: "you stopped it", stoppedByPerson: true }
  }
}

/** The passages that the last answer cited. The model sees them again, because a question such as "and why?" refers to them. */
function lastCitedPassages(history: Exchange[], found: Passage[]): Passage[] {
  const foundNumbers = new Set(found.map(({ n }) => n))
  return (history.at(-1)?.cited ?? []).filter(({ n }) => !foundNumbers.has(n))
}

function messagesOf({ question, answer }: Exchange): ModelMessage[] {
  return [
    { role: "user", content: question },
    { role: "assistant", content: answer },
  ]
}

function tokensOf(history: Exchange[]): number {
  return estimateTokens(JSON.stringify(history.flatMap(messagesOf)))
}

/** Answers one question (`dex chat "…" --json`). */
export async function run(dex: Dex, input: ChatInput): Promise<AskAnswer> {
  if (input.query === undefined)
    throw new DexError("usage", 'What is the question? dex ask "how do we retry failed webhooks" --json')
  if (input.opencode) throw new DexError("usage", "--opencode has no JSON output. Omit --json or --opencode.")
  const { chat, stored } = await startChat(dex, input)
  stored.question(input.query)
  const answer = await chat.ask(input.query, { signal: dex.signal })
  stored.answer(answer)
  return answer
}

/** Opens a chat with the configured model, and prepares to store the chat in a folder. */
export async function startChat(dex: Dex, input: ChatInput) {
  const { temperature } = input
  if (temperature !== undefined && (temperature < 0 || temperature > 2))
    throw new DexError("usage", `--temperature must be from 0 to 2, not ${temperature}.`)
  const { configuredModel } = await import("../tools/model.ts")
  const { collections, no_global, use_case } = input
  const model = await configuredModel(dex, { model: input.model, temperature })
  const scope = { among: "all" as const, collections, noGlobal: no_global }
  const chat = await openChat(dex, { scope, model, use_case })
  const stored = storeChat(dex, { model: model?.id, collections, useCase: chat.useCase })
  return { chat, model, stored }
}

/** A model's text as it arrives. Only sentences that their sources support are shown. */
export type Sentences = {
  append(piece: string): void
  /** Called when the stream broke. The model may then send its reply again from the start. */
  restart(): void
  /** Called when a reply is complete. Its dropped sentences count only if it is the answer and not a remark before a search. */
  end(isAnswer: boolean): void
  /** Called when a reply was interrupted. Its last, incomplete sentence is never shown. */
  interrupt(): void
  /** Everything that was shown, and how many sentences were dropped. */
  checked(): CheckedAnswer
  /** How often the stream broke and started again. */
  breaks(): number
}

/**
 * Shows sentences once they are complete and `check` supports them. A sentence that was shown stays in the answer, so nothing is
 * shown twice or withdrawn: a repeated reply, or one that follows a search, adds only new sentences.
 */
export function createSentences(check: (text: string) => CheckedAnswer, show: (sentence: string) => void): Sentences {
  const shownTexts = new Set<string>()
  const total: CheckedAnswer = { kept: [], dropped: { ...NONE_DROPPED } }
  let text = ""
  let settledChars = 0
  let shownCount = 0
  let isBroken = false
  let breakCount = 0
  const reset = () => {
    text = ""
    settledChars = 0
    shownCount = 0
  }
  const showSupported = (length: number): CheckedAnswer => {
    const checked = check(text.slice(0, length))
    for (const sentence of checked.kept.slice(shownCount)) {
      shownCount++
      if (shownTexts.has(sentence.text)) continue
      shownTexts.add(sentence.text)
      total.kept.push(sentence)
      show(sentence.text)
    }
    return checked
  }
  const countDropped = ({ dropped }: CheckedAnswer) => {
    for (const reason of Object.keys(dropped) as (keyof typeof dropped)[]) total.dropped[reason] += dropped[reason]
  }
  return {
    append(piece) {
      if (isBroken) breakCount++
      isBroken = false
      text += piece
      const length = settledLength(text)
      if (length <= settledChars) return
      settledChars = length
      showSupported(length)
    },
    restart() {
      isBroken = true
      reset()
    },
    end(isAnswer) {
      const checked = showSupported(text.length)
      if (isAnswer) countDropped(checked)
      reset()
    },
    interrupt() {
      countDropped(showSupported(settledChars))
      reset()
    },
    checked: () => total,
    breaks: () => breakCount,
  }
}
