import type { Part } from "../../core/conversation.ts"
import { parseObject, records, string } from "../../core/record.ts"
import { isSelfContained } from "./alone.ts"
import { isDecision, isQuestion } from "./decided.ts"
import { sentencesOf, typedLines } from "./typed.ts"

// Finds decisions in a person's answers to an agent's questions.

type DecidingAnswer = { kind: "answer"; quote: string; origin: "person" | "agent"; text: string }

/** The beginning of the text that agents write in the person's name if only some questions were answered. */
const CLARIFICATION_START = "The user wants to clarify these questions."
const MAX_CHARS = 20_000

/** Finds the answers that decide something, in a tool's result or in the text that agents write instead of a result. */
export function findDecidingAnswers(
  part: Part & { type: "tool_result" | "text" },
  calls: Map<string, string>,
): DecidingAnswer[] {
  const text = part.text.slice(0, MAX_CHARS)
  if (part.type === "text")
    return text.trimStart().startsWith(CLARIFICATION_START)
      ? partialAnswers(text).flatMap((one) => decisionsOf(one, undefined))
      : []
  if (part.tool !== "AskUserQuestion" || part.is_error) return []
  const questions = questionsOf(part.call_id === undefined ? undefined : calls.get(part.call_id))
  const options = questions && new Set(questions.flatMap(({ options }) => options))
  return parsePairs(
    text,
    questions?.map(({ question }) => question),
  ).flatMap((one) => decisionsOf(one, options))
}

type QuestionAndAnswer = { question: string; answer: string }

/** Parses `"question"="answer", "question"="answer". You can now …`. Questions and answers may contain quotes. */
function parsePairs(text: string, questions: string[] = []): QuestionAndAnswer[] {
  const pieces = text.split('"="')
  return pieces.slice(1).map((piece, i) => {
    const previous = pieces[i]!
    const from = Math.max(previous.lastIndexOf(': "'), previous.lastIndexOf(', "'))
    const question =
      questions.find((one) => previous.endsWith(`"${one}`)) ?? previous.slice(from < 0 ? 0 : from + 3).trim()
    const nextQuestion = pieces[i + 2] === undefined ? undefined : questions.find((one) => piece.endsWith(`", "${one}`))
    const end =
      nextQuestion === undefined ? endOf(piece, i + 2 === pieces.length) : piece.length - nextQuestion.length - 4
    return { question, answer: piece.slice(0, Math.max(0, end)).trim() }
  })
}

/** Matches the text that agents write after the last answer. The wording depends on the agent's version. */
const AFTER_LAST_ANSWER = /"\. (?:You can now|Read the answers)(?![\s\S]*"\. (?:You can now|Read the answers))/

function endOf(piece: string, isLast: boolean): number {
  const end = isLast ? piece.search(AFTER_LAST_ANSWER) : piece.lastIndexOf('", "')
  return end < 0 ? piece.lastIndexOf('"') : end
}

/** Parses `- "question"`, followed by a line `Answer: …`. */
function partialAnswers(text: string): QuestionAndAnswer[] {
  const lines = text.split("\n").map((line) => line.trim())
  return lines.flatMap((line, i) => {
    const [, question] = /^- "(.+)"$/.exec(line) ?? []
    const [, answer] = /^Answer: (.+)$/.exec(lines[i + 1] ?? "") ?? []
    return question === undefined || answer === undefined ? [] : [{ question, answer }]
  })
}

/** Matches questions about how to continue the work. Their answers decide nothing about the product. */
const ABOUT_THE_WORK =
  /\bwhat (?:would|do) you (?:like|want)(?: me)? to do\b|\bnext\b|\bready to\b|\b(?:force.?)?push\b|\bbe committed\b|\bshould i (?:commit|start|proceed|continue|go ahead|write|create)\b|\bproceed\b|\bwhich (?:PR|pull request|issue|ticket|task)\b|\bare there (?:any )?other\b|\bPRs?\b|\bwhere should i\b|\b(?:look|sound)s? (?:good|right)\b|\bcapture the right\b/i

function decisionsOf(
  { question, answer: complete }: QuestionAndAnswer,
  options: Set<string> | undefined,
): DecidingAnswer[] {
  const isTyped = options !== undefined && !consistsOfOptions(complete, options)
  const answer = isTyped ? typedLines(complete).join("\n") : complete
  if (answer === "" || answer.endsWith(":") || isQuestion(answer)) return []
  const decision: DecidingAnswer = {
    kind: "answer",
    ...(isTyped && isSelfContained(answer)
      ? { quote: answer, origin: "person" }
      : { quote: `${question} → ${answer}`, origin: "agent" }),
    text: `${question}\n${answer}`,
  }
  if (!isTyped) return ABOUT_THE_WORK.test(question) ? [] : [decision]
  if (!ABOUT_THE_WORK.test(question)) return [decision]
  return answer.split("\n").flatMap(sentencesOf).some(isDecision) ? [decision] : []
}

/** Whether the answer consists only of offered options. Several may be chosen, and each may contain commas. */
function consistsOfOptions(answer: string, options: Set<string>): boolean {
  const longestFirst = [...options].filter((one) => one !== "").sort((a, b) => b.length - a.length)
  let rest = answer
  for (;;) {
    const chosen = longestFirst.find((one) => rest === one || rest.startsWith(`${one}, `))
    if (chosen === undefined) return false
    if (rest === chosen) return true
    rest = rest.slice(chosen.length + 2)
  }
}

function questionsOf(call: string | undefined): { question: string; options: string[] }[] | undefined {
  if (call === undefined) return undefined
  return records(parseObject(call)?.questions).map(({ question, options }) => ({
    question: string(question) ?? "",
    options: records(options).flatMap(({ label }) => string(label) ?? []),
  }))
}
