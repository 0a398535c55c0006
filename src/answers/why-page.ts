import { grouped } from "../core/format.ts"
import { safeLine } from "../render/terminal.ts"
import { many } from "../render/words.ts"
import type { Explanation, TestOutcome } from "./why-facts.ts"

type WhyReport = {
  commits: { hash: string; subject: string }[]
  conversations: Explanation[]
  answer?: { text: string; sources: { n: number; ref: string }[] }
  lines: number
  unknown: number
}

/** The maximum number of words of an explanation. A reviewer will not read more. */
const MAX_WORDS = 300
const MAX_QUOTED_WORDS = 32
/** The order in which facts are dropped to save space. The person's requests are not dropped. */
const DROP_ORDER = ["open", "rejected", "tests", "decided", "done"] as const

/**
 * Shortens the facts until they can be read in a minute: first long quotes, then the facts of all conversations but the first,
 * then those conversations, then facts of the first one.
 */
export function shortenToOneMinute(explanations: Explanation[]): Explanation[] {
  const shortened = explanations.map((one) => ({
    ...one,
    asked: one.asked.map(shortenQuote),
    decided: one.decided.map(shortenQuote),
    rejected: one.rejected.map(shortenQuote),
    done: one.done?.map(shortenQuote) ?? [],
    open: one.open.map(shortenQuote),
  }))
  for (const name of DROP_ORDER)
    for (const one of shortened.slice(1).toReversed()) if (countWords(shortened) > MAX_WORDS) one[name] = []
  while (shortened.length > 1 && countWords(shortened) > MAX_WORDS) shortened.pop()
  for (const name of DROP_ORDER)
    while (countWords(shortened) > MAX_WORDS && shortened[0]![name].length > 1) shortened[0]![name].pop()
  return shortened
}

function shortenQuote<T extends { text: string }>(one: T): T {
  const words = safeLine(one.text).split(/\s+/)
  return {
    ...one,
    text: words.length > MAX_QUOTED_WORDS ? `${words.slice(0, MAX_QUOTED_WORDS).join(" ")}…` : words.join(" "),
  }
}

function countWords(conversations: Explanation[]): number {
  return conversations
    .flatMap(sectionsOf)
    .flatMap(({ rows }) => rows.flatMap(({ text, ref }) => `${text} ${ref}`.split(/\s+/))).length
}

/** How many of the lines the conversation wrote, and how certain that is. */
export function shareText(
  { lines, proved, likely }: Pick<Explanation, "lines" | "proved" | "likely">,
  total: number,
): string {
  if (lines === 0) return "made the commit, wrote none of its lines"
  if (proved > 0 && likely > 0)
    return `${grouped(proved)} proved and ${grouped(likely)} likely of ${many(total, "line")}`
  return `${proved > 0 ? "proved" : "likely"}, ${grouped(lines)} of ${many(total, "line")}`
}

export type WhySection = { title: string; rows: { text: string; ref: string }[] }

/** The facts about a conversation under headings. Texts from transcripts are escaped here. */
export function sectionsOf({ asked, decided, rejected, done = [], tests, open }: Explanation): WhySection[] {
  const quoted = (rows: { text: string; ref: string }[]) =>
    rows.map(({ text, ref }) => ({ text: `“${safeLine(text)}”`, ref: safeLine(ref) }))
  return [
    { title: "Asked", rows: quoted(asked) },
    { title: "Decided", rows: quoted(decided) },
    { title: "Rejected", rows: quoted(rejected) },
    { title: "Done", rows: quoted(done) },
    { title: "Tests", rows: tests.map((run) => ({ text: outcomeText(run), ref: safeLine(run.ref) })) },
    { title: "Left open", rows: open.map(({ text, ref }) => ({ text: safeLine(text), ref: safeLine(ref) })) },
  ].filter(({ rows }) => rows.length > 0)
}

function outcomeText({ command, outcome, failed_before }: TestOutcome): string {
  const earlierFailures =
    failed_before === 0 ? "" : `, after ${failed_before === 1 ? "a failure" : `${failed_before} failures`}`
  return `${safeLine(command)}: ${outcome}${earlierFailures}`
}

/** Formats an explanation as Markdown for a review, with every ref. */
export function whyMarkdown({ commits, conversations, answer, lines, unknown }: WhyReport): string[] {
  const head = commits.map(({ hash, subject }) => `- ${hash.slice(0, 10)} ${safeLine(subject)}`)
  return [
    "## Why",
    "",
    ...(head.length > 0 ? [...head, ""] : []),
    ...(answer
      ? [safeLine(answer.text), "", ...answer.sources.map(({ n, ref }) => `[${n}] \`${safeLine(ref)}\``), ""]
      : []),
    ...conversations.flatMap((one) => [
      `### ${safeLine(one.title)}`,
      "",
      `${shareText(one, lines)}, \`${safeLine(one.ref)}\``,
      "",
      ...sectionsOf(one).flatMap(({ title, rows }) => [
        `**${title}**`,
        "",
        ...rows.map(({ text, ref }) => `- ${text} (\`${ref}\`)`),
        "",
      ]),
    ]),
    ...(unknown > 0 ? [`${unknown} of ${lines} lines: unknown.`, ""] : []),
  ]
}
