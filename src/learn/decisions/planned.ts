import { subjectOf } from "./subject.ts"
import { sentencesOf } from "./typed.ts"

// Finds the decision in an approved plan: its title, and what will be done.

const MAX_PLAN_CHARS = 50_000
const MAX_QUOTE_LENGTH = 300
const MIN_SUBJECT_WORDS = 3
/** Matches headings of sections that say what will be done. Sections with reasons are not used. */
const WORK_HEADING =
  /\b(?:decisions?|approach|solution|design|fix|proposed|proposal|strategy|changes?|implementation|what)\b/i
/** Matches headings of summaries, which are used if no other section fits. */
const SUMMARY_HEADING = /\b(?:summary|overview|goals?|objective|plan)\b/i

type Section = { heading: string; lines: string[] }

/**
 * Returns the title and the first sentence about the work. Returns undefined if there is no such sentence, or if the plan is for
 * a review.
 */
export function decisionInPlan(plan: string): string | undefined {
  const [title, ...sections] = sectionsOf(plan.slice(0, MAX_PLAN_CHARS))
  if (!title || /^review\b/i.test(title.heading)) return undefined
  const introduction = { heading: "overview", lines: title.lines }
  const ordered = [
    ...sections.filter(({ heading }) => WORK_HEADING.test(heading)),
    ...[introduction, ...sections].filter(({ heading }) => SUMMARY_HEADING.test(heading)),
  ]
  for (const section of ordered) {
    const sentence = firstSentence(section)
    if (sentence !== undefined) return `${title.heading}\n${sentence}`
  }
  return undefined
}

/** Splits a plan into sections. The first is the title with the text below it. */
function sectionsOf(plan: string): Section[] {
  const sections: Section[] = []
  let isFenced = false
  for (const line of plan.split("\n")) {
    if (/^\s*(?:```|~~~)/.test(line)) isFenced = !isFenced
    if (isFenced || /^\s*(?:```|~~~)/.test(line) || line.trim() === "") continue
    const [, heading] = /^#+\s+(.*)$/.exec(line) ?? []
    if (heading !== undefined || sections.length === 0)
      sections.push({ heading: (heading ?? line).replaceAll("**", "").trim(), lines: [] })
    else sections.at(-1)!.lines.push(line)
  }
  return sections
}

/** Returns the section's first complete sentence, ignoring table rows and horizontal lines. */
function firstSentence({ lines }: Section): string | undefined {
  return lines
    .filter((line) => !/^\s*(?:\||[-=]{3,})/.test(line))
    .flatMap((line) => sentencesOf(line.replaceAll(/\*\*|^\s+/g, "")))
    .find(isSentence)
    ?.slice(0, MAX_QUOTE_LENGTH)
}

const MIN_WORDS = 5

/** Whether the text is a sentence in words. A file name, a call or an introduction to a list is not one. */
function isSentence(sentence: string): boolean {
  if (/[:?]$/.test(sentence)) return false
  const words = sentence.replaceAll(/`[^`]*`/g, " ").match(/[A-Za-z']{2,}/g) ?? []
  return words.length >= MIN_WORDS && subjectOf(sentence).length >= MIN_SUBJECT_WORDS
}
