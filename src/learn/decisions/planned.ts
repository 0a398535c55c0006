import { subjectOf } from "./subject.ts"
import { sentencesOf } from "./typed.ts"

// What an approved plan decides: its title, and what it says will be done.

const LOOKED_AT = 50_000
const LONGEST = 300
const LEAST_SUBJECT = 3
/** Sections that say what will be done, then those that say it in short. What says why does not say what. */
const SAYS_WHAT =
  /\b(?:decisions?|approach|solution|design|fix|proposed|proposal|strategy|changes?|implementation|what)\b/i
const IN_SHORT = /\b(?:summary|overview|goals?|objective|plan)\b/i

type Section = { heading: string; lines: string[] }

/** Undefined where nothing but a name can be told. */
export function plannedIn(plan: string): string | undefined {
  const [title, ...sections] = sectionsOf(plan.slice(0, LOOKED_AT))
  if (!title || /^review\b/i.test(title.heading)) return undefined
  const before = { heading: "overview", lines: title.lines }
  const ordered = [
    ...sections.filter(({ heading }) => SAYS_WHAT.test(heading)),
    ...[before, ...sections].filter(({ heading }) => IN_SHORT.test(heading)),
  ]
  for (const section of ordered) {
    const said = firstSaid(section)
    if (said !== undefined) return `${title.heading}\n${said}`
  }
  return undefined
}

/** The first is the title with what stands below it. */
function sectionsOf(plan: string): Section[] {
  const sections: Section[] = []
  let fenced = false
  for (const line of plan.split("\n")) {
    if (/^\s*(?:```|~~~)/.test(line)) fenced = !fenced
    if (fenced || /^\s*(?:```|~~~)/.test(line) || line.trim() === "") continue
    const [, heading] = /^#+\s+(.*)$/.exec(line) ?? []
    if (heading !== undefined || sections.length === 0)
      sections.push({ heading: (heading ?? line).replaceAll("**", "").trim(), lines: [] })
    else sections.at(-1)!.lines.push(line)
  }
  return sections
}

/** Its first sentence that says something. */
function firstSaid({ lines }: Section): string | undefined {
  return lines
    .filter((line) => !/^\s*(?:\||[-=]{3,})/.test(line))
    .flatMap((line) => sentencesOf(line.replaceAll(/\*\*|^\s+/g, "")))
    .find(isSaid)
    ?.slice(0, LONGEST)
}

const LEAST_WORDS = 5

/** A sentence in words, not only a file, a call or a heading of what follows. */
function isSaid(sentence: string): boolean {
  if (/[:?]$/.test(sentence)) return false
  const words = sentence.replaceAll(/`[^`]*`/g, " ").match(/[A-Za-z']{2,}/g) ?? []
  return words.length >= LEAST_WORDS && subjectOf(sentence).length >= LEAST_SUBJECT
}
