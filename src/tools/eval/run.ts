import { existsSync } from "node:fs"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { loadSettings } from "../../config/load.ts"
import { SETTINGS } from "../../config/settings.ts"
import { writeSetting } from "../../config/write.ts"
import { DexError, messageOf } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { type CommitQuestion, newestWithin, questionsOf, type Reach } from "../../search/commit-questions.ts"
import { fitWeights, type Halves, isWorthTaking } from "../../search/fit.ts"
import { maskedStore } from "../../search/masked.ts"
import {
  askQuestion,
  figuresOf,
  intervalOf,
  isFittedOn,
  type QuestionRank,
  relativesOf,
  type Searched,
} from "../../search/measure.ts"
import { hiddenFrom } from "../../search/scope.ts"
import { FITTED_SETTINGS, type Fitted, fittedOf, weightsOf } from "../../search/weights.ts"
import type { CommitRow, HistoryReader } from "../../store/history/store.ts"
import { openIndex } from "../../store/index/search-index.ts"
import { openScratch } from "../../store/sqlite/scratch.ts"
import type { Dex } from "../context.ts"

type Input = { mine: boolean; fit: boolean; reset: boolean; limit: number }

/** Beyond this a measure would take longer than anybody waits for one. */
const MOST_MESSAGES = 200_000
const MOST_COMMITS = 20_000
const LEAST_QUESTIONS = 10
/** Of fewer, a half says nothing. */
const LEAST_TO_FIT = 40

export async function run(dex: Dex, input: Input) {
  const started = Date.now()
  const done = <T extends object>(output: T) => ({ notes: [], ...output, duration_ms: Date.now() - started })
  if (input.reset) {
    if (existsSync(dex.home.config))
      for (const name of Object.values(FITTED_SETTINGS)) writeSetting(dex.home.config, name, undefined)
    return done({ reset: true, weights: current(dex).weights, notes: overruled(dex) })
  }
  if (!input.mine)
    throw new DexError(
      "usage",
      "dex eval --mine asks for your own commits and says how many are found; --fit fits the ranking to them, --reset goes back.",
    )
  if (!dex.hasHistory())
    throw new DexError("no_history", "Nothing is stored yet. `dex sync` reads what your agents have written.")
  const { weights, isUsual } = current(dex)
  const store = await dex.store()
  const reach = await newestWithin(store, MOST_MESSAGES, dex.project)
  const commits = await store.commits({ limit: MOST_COMMITS, inside: dex.project })
  const { questions: all, left_out } = questionsOf(commits, reach.refs, input.limit)
  const asked = { commits: commits.length, questions: all.length, left_out }
  // Weights are not measured by the questions that they were fitted on.
  const questions = isUsual ? all : all.filter((question) => !isFittedOn(question))
  if (questions.length < LEAST_QUESTIONS) return done({ asked, weights, notes: [tooFew(questions.length, commits)] })
  const notes = await limitsOf(dex, store, reach, isUsual)
  const measured = await withMaskedIndex(dex, store, commits, reach, async (searched) => {
    const { answers, ...figures } = await measure(dex, searched, questions, weights)
    if (!input.fit || all.length < LEAST_TO_FIT) return figures
    return { ...figures, fit: await tryToFit(dex, searched, all, weights, answers) }
  })
  const taken = "fit" in measured && measured.fit.taken
  if (input.fit && !("fit" in measured))
    notes.push(`Fitting needs ${LEAST_TO_FIT} questions, and there are ${all.length}. Nothing was changed.`)
  if (taken) notes.push(...overruled(dex))
  const { refs, messages, of_conversations, of_messages } = reach
  const searched = { conversations: refs.size, messages, of_conversations, of_messages }
  return done({ asked, searched, weights, ...measured, notes })
}

function current(dex: Dex): { weights: Fitted; isUsual: boolean } {
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.project })
  const isUsual = Object.values(FITTED_SETTINGS).every((name) => settings[name] === SETTINGS[name].default)
  return { weights: fittedOf(settings), isUsual }
}

/** What is set in the environment counts for more than what is kept. */
function overruled(dex: Dex): string[] {
  const { origins } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.project })
  const names = Object.values(FITTED_SETTINGS).filter((name) => origins[name] === "environment")
  return names.length > 0 ? [`The environment sets ${names.join(", ")}, and wins over your settings.`] : []
}

/** An index of the masked history, in a folder of its own that is gone whichever way this ends. */
async function withMaskedIndex<T>(
  dex: Dex,
  store: HistoryReader,
  commits: CommitRow[],
  reach: Reach,
  work: (searched: Searched) => Promise<T>,
): Promise<T> {
  const { folder, close } = privateFolder(dex)
  process.once("exit", close)
  try {
    const index = openIndex(join(folder, "index.db"))
    try {
      const read = { conversations: 0, bytes: 0 }
      const masked = maskedStore(store, {
        subjects: commits.map(({ subject }) => subject),
        only: reach.refs,
        onConversation: async ({ text_bytes }) => {
          read.conversations++
          read.bytes += text_bytes
          dex.onProgress?.({
            phase: "indexing",
            done: read.conversations,
            total: reach.refs.size,
            bytes: read.bytes,
            bytesTotal: reach.bytes,
          })
          await pause(dex)
        },
      })
      await index.follow(masked)
      return await work({ store: masked, index, inside: dex.project })
    } finally {
      index.close()
    }
  } finally {
    close()
    process.off("exit", close)
  }
}

function privateFolder(dex: Dex): ReturnType<typeof openScratch> {
  try {
    return openScratch(dex.home.dir)
  } catch (error) {
    throw new DexError(
      "no_temp",
      `No temporary folder could be made in ${dex.home.dir} (${messageOf(error)}). Make it writable, or set DEX_HOME.`,
      { cause: error },
    )
  }
}

/** Lets signals and the progress bar have their turn: SQLite never waits. */
async function pause(dex: Dex): Promise<void> {
  await setImmediate()
  if (dex.signal?.aborted) throw new DexError("cancelled", "Stopped. Nothing was kept or changed.")
}

function asking(dex: Dex, total: number): () => Promise<void> {
  let done = 0
  return async () => {
    done++
    dex.onProgress?.({ phase: "asking", done, total, bytes: done, bytesTotal: total })
    await pause(dex)
  }
}

async function measure(dex: Dex, searched: Searched, questions: CommitQuestion[], fitted: Fitted) {
  const weights = weightsOf(fitted)
  const next = asking(dex, questions.length)
  const answers = new Map<CommitQuestion, QuestionRank>()
  const without: QuestionRank[] = []
  for (const question of questions) {
    await next()
    answers.set(question, await askQuestion(searched, question, weights))
    without.push(await askQuestion(searched, question, weights, await relativesOf(searched.store, question.gold)))
  }
  const figures = figuresOf([...answers.values()])
  return {
    answers,
    figures,
    hit_at_5_interval: intervalOf(figures.hit_at_5, figures.n),
    silent_without_answer: figuresOf(without).silent,
  }
}

/** Fits on one half and judges by both. `known` are answers that the weights before have given already. */
async function tryToFit(
  dex: Dex,
  searched: Searched,
  questions: CommitQuestion[],
  before: Fitted,
  known: Map<CommitQuestion, QuestionRank>,
) {
  const weights = await fitWeights(searched, questions.filter(isFittedOn), before, () => pause(dex))
  const next = asking(dex, 2 * questions.length - known.size)
  const halvesWith = async (fitted: Fitted, given: ReadonlyMap<CommitQuestion, QuestionRank>): Promise<Halves> => {
    const halves: Record<keyof Halves, QuestionRank[]> = { fitted: [], other: [] }
    for (const question of questions) {
      if (!given.has(question)) await next()
      const answer = given.get(question) ?? (await askQuestion(searched, question, weightsOf(fitted)))
      halves[isFittedOn(question) ? "fitted" : "other"].push(answer)
    }
    return { fitted: figuresOf(halves.fitted), other: figuresOf(halves.other) }
  }
  const was = await halvesWith(before, known)
  const is = await halvesWith(weights, new Map())
  const taken = isWorthTaking(was, is)
  if (taken)
    for (const name of ["pairs", "neighbours", "decay"] as const)
      writeSetting(dex.home.config, FITTED_SETTINGS[name], weights[name])
  return {
    taken,
    weights,
    fitted_half: { before: was.fitted, after: is.fitted },
    other_half: { before: was.other, after: is.other },
  }
}

async function limitsOf(dex: Dex, store: HistoryReader, reach: Reach, isUsual: boolean): Promise<string[]> {
  const notes = [
    "Most subjects were written by the agent that did the work, so they share its words: what you ask in words of your own is found less often.",
  ]
  if (reach.refs.size < reach.of_conversations)
    notes.push(
      `Only the newest ${grouped(reach.refs.size)} of ${grouped(reach.of_conversations)} conversations were searched (about ${grouped(MOST_MESSAGES)} messages), and only their commits asked for.`,
    )
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.project })
  if (settings["embed.provider"] !== "none" || settings["search.rerank"])
    notes.push("Measured by words alone: no text was sent to the servers that your searches also ask.")
  if (!isUsual)
    notes.push(
      "The weights are not the usual ones, so only the half of the questions was asked that a fit never sees. `dex eval --reset` restores the defaults.",
    )
  const hidden = hiddenFrom(await store.projects(), dex.project, dex.machine.platform).length
  if (hidden > 0)
    notes.push(
      `${grouped(hidden)} private ${hidden === 1 ? "project was" : "projects were"} neither searched nor asked for.`,
    )
  return notes
}

function tooFew(questions: number, commits: CommitRow[]): string {
  const found =
    commits.length === 0
      ? "No commits are known that were made in your conversations"
      : `Of ${grouped(commits.length)} ${commits.length === 1 ? "commit" : "commits"} made in your conversations, ${grouped(questions)} can be asked for`
  return `${found}; a measure needs ${LEAST_QUESTIONS}. What counts is a \`git commit\` that an agent ran, with a subject of four words or more. Let your agents commit, run \`dex sync\`, and try again later.`
}
