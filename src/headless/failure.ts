import { DexError } from "../core/error.ts"
import { redactText } from "../redact/redact.ts"
import { agentName, type ChosenAgent } from "./choose.ts"
import type { ProgramEnd } from "./run-program.ts"

const NEWER = /unknown (option|argument|command)|unexpected argument|unrecognized (option|argument|subcommand)/i
const NO_LOGIN =
  /not logged in|please run \/login|log ?in again|invalid (x-)?api[ -]?key|incorrect api key|api key (is )?(missing|not)|unauthori[sz]ed|authenticat|auth method|no auth|token (has )?expired|re-?authenticate/i
const BUSY = /rate.?limit|too many requests|usage limit|quota|resource_exhausted|overloaded|high demand|hit your limit/i
const NO_MODEL =
  /model.{0,80}(not (valid|found|exist|available|supported)|may not exist|does not exist)|(no such|invalid|unknown) model|modelnotfound/i
const TOO_LONG = /prompt is too long|context.{0,40}(exceed|length|window)|too many tokens/i

/** What an agent said instead of answering, as what a person can do about it. */
export function agentRefused(
  chosen: ChosenAgent,
  model: string | undefined,
  status: number | undefined,
  words: string,
): DexError {
  const name = agentName(chosen)
  const { headless } = chosen
  const why = said(words, status)
  if (status === 401 || status === 403 || NO_LOGIN.test(words))
    return new DexError(
      "llm_refused",
      `${name} is not logged in, or its provider refused the login${why}. Log in (${headless.login}), then try again.`,
    )
  if (status === 429 || status === 402 || BUSY.test(words))
    return new DexError(
      "llm_busy",
      `${name} is asked too often, or what your plan allows is used up${why}. Try again later, or choose another: dex config set llm.provider …`,
    )
  if (TOO_LONG.test(words))
    return new DexError("llm_too_long", `${name} says that this is too long for its model${why}.`)
  if (status === 404 || NO_MODEL.test(words))
    return new DexError(
      "llm_no_model",
      model === undefined
        ? `${name} has no such model${why}. Choose one there, or: dex config set llm.model …`
        : `${name} has no model ${model}${why}. \`dex config unset llm.model\` leaves the choice to ${name}.`,
    )
  return new DexError(
    "llm_failed",
    `${name} could not answer${why}. Try again, or try it yourself: ${headless.program}`,
  )
}

/** It ended and gave no answer that can be read. */
export function agentEnded(
  chosen: ChosenAgent,
  model: string | undefined,
  { code, stderr, stdout }: ProgramEnd,
): DexError {
  const name = agentName(chosen)
  const { install } = chosen.headless
  const words = stderr.trim() === "" ? stdout : stderr
  if (NEWER.test(words))
    return new DexError(
      "llm_too_old",
      `${name} is too old to be asked as a model${said(optionIn(words))}. Update it: ${install}`,
    )
  if (code === 0)
    return new DexError(
      "llm_wrong_answer",
      `What ${name} printed is not an answer that dex can read. Update it: ${install}`,
    )
  if ([NO_LOGIN, BUSY, NO_MODEL, TOO_LONG].some((pattern) => pattern.test(words)))
    return agentRefused(chosen, model, undefined, lastLine(words))
  return new DexError(
    "llm_failed",
    `${name} ended ${code === null ? "before its time" : `with code ${code}`} and without an answer${said(lastLine(words))}. Try it yourself: ${chosen.headless.program}`,
  )
}

export function agentNotStarted(chosen: ChosenAgent, error: NodeJS.ErrnoException): DexError {
  const { program, install } = chosen.headless
  return new DexError(
    "llm_no_program",
    `${agentName(chosen)} could not be started: ${program} (${error.code ?? error.message}). Install it again: ${install}`,
  )
}

export function agentTooSlow(chosen: ChosenAgent, limitMs: number): DexError {
  return new DexError(
    "llm_silent",
    `${agentName(chosen)} did not answer within ${Math.round(limitMs / 1000)} s and was stopped. Try again later: it may be waiting for a busy provider.`,
  )
}

export function agentTooLoud(chosen: ChosenAgent): DexError {
  return new DexError("llm_wrong_answer", `${agentName(chosen)} printed far more than an answer and was stopped.`)
}

/** Somebody else's words as they may be shown: printable, short, without secrets. */
function said(words: string, status?: number): string {
  const printable = redactText(words)
    .replace(/[^ -~]+/g, " ")
    .replace(/ +/g, " ")
    .trim()
    .slice(0, 200)
    .trimEnd()
  const both = [status, printable].filter((part) => part !== undefined && part !== "").join(": ")
  return both === "" ? "" : ` (${both})`
}

function optionIn(words: string): string {
  return words.split("\n").find((line) => NEWER.test(line)) ?? ""
}

/** Stack traces come last; the line before them says what happened. */
function lastLine(words: string): string {
  const lines = words.split("\n").map((line) => line.trim())
  return lines.filter((line) => line !== "" && !/^(at |[{}\])]|\d+: )/.test(line)).at(-1) ?? ""
}
