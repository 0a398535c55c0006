import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { formatRef } from "../../src/core/ref.ts"
import { type Decision, decisionsIn } from "../../src/learn/decisions/decisions.ts"
import { findReversals } from "../../src/learn/decisions/supersede.ts"
import type { ConversationRow, StoredMessage } from "../../src/store/history/store.ts"
import { openGenuineHome } from "../genuine-home.ts"
import { Absent } from "../set.ts"
import { isSameQuote } from "./same.ts"
import { plain, sentenceHash, sentencesOf } from "./sentences.ts"

// The decisions that are found, compared with those labelled by hand before there was an extractor.
//   npm run eval:decisions -- [--half held|develop] [--show]     --show prints what was wrong and missed

type Label = { conversation: string; number: number; kind: string; quotes: string[]; added_after?: boolean }
type Place = { conversation: string; number: number; quote: string }
type Labels = {
  conversations: { held: string[]; develop: string[] }
  labels: Label[]
  superseded: { earlier: Place; later: Place; added_after?: boolean }[]
}
type Found = Decision & { row: ConversationRow; messages: StoredMessage[] }
/** One decision, however often its words were sent. */
type Wanted = Label & { numbers: number[]; texts: string[] }

const { values } = parseArgs({
  options: { half: { type: "string", default: "held" }, show: { type: "boolean", default: false } },
})
const half = values.half === "develop" ? "develop" : "held"
const labels = JSON.parse(readFileSync(new URL("labels.json", import.meta.url), "utf8")) as Labels

try {
  const home = await openGenuineHome()
  const all: Found[] = []
  const spoken = new Map<string, StoredMessage[]>()
  for (const id of [...labels.conversations.held, ...labels.conversations.develop]) {
    const row = await home.store.conversation({ source: "claude_code", id })
    if (!row) throw new Error(`conversation ${id} is not in the corpus`)
    const messages = await home.store.messages(row.ref)
    spoken.set(id, messages)
    all.push(...decisionsIn(row, messages).map((decision) => ({ ...decision, row, messages })))
  }
  home.close()
  measureFound(all, spoken)
  measureSuperseded(all, spoken)
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.log(`NOT RUN: ${error.message}`)
}

function measureFound(all: Found[], spoken: Map<string, StoredMessage[]>): void {
  const inHalf = new Set(labels.conversations[half])
  const found = all.filter(({ row }) => inHalf.has(row.ref.id))
  const wanted = wantedIn(inHalf, spoken)
  const before = wanted.filter((label) => !label.added_after)
  console.log(
    `\nDecisions in ${inHalf.size} conversations (${half}): ${before.length} labelled, ${found.length} found\n`,
  )
  console.log("kind      found right precision              labelled recalled recall")
  for (const kind of ["all", "said", "answer", "plan"]) {
    const of = <T extends { kind: string }>(list: T[]) =>
      kind === "all" ? list : list.filter((one) => one.kind === kind)
    tell(kind, of(found), of(before), wanted)
  }
  if (wanted.length > before.length) {
    console.log("\nafter review (labels that were missed are marked added_after)")
    tell("all", found, wanted, wanted)
    tell(
      "said",
      found.filter(({ kind }) => kind === "said"),
      wanted.filter(({ kind }) => kind === "said"),
      wanted,
    )
  }
  if (!values.show) return
  console.log("\nWRONG")
  for (const one of found) if (!before.some((label) => isSame(one, label))) console.log(`  ${told(one)}`)
  console.log("\nMISSED")
  for (const label of before)
    if (!found.some((one) => isSame(one, label)))
      console.log(`  ${label.kind} ${label.conversation}#${label.number} ${label.texts.join(" / ")}`)
}

/** An answer or a plan that is right counts as right whatever kind it was labelled as. */
function tell(kind: string, found: Found[], wanted: Wanted[], everything: Wanted[]): void {
  const counted = new Set(wanted)
  const may = everything.filter((label) => counted.has(label) || (!label.added_after && kind !== "all"))
  const right = found.filter((one) => may.some((label) => isSame(one, label))).length
  const recalled = wanted.filter((label) => found.some((one) => isSame(one, label))).length
  console.log(
    `${kind.padEnd(9)} ${String(found.length).padStart(5)} ${String(right).padStart(5)} ${share(right, found.length).padEnd(22)} ${String(wanted.length).padStart(8)} ${String(recalled).padStart(8)} ${share(recalled, wanted.length)}`,
  )
}

function wantedIn(inHalf: Set<string>, spoken: Map<string, StoredMessage[]>): Wanted[] {
  const merged = new Map<string, Wanted>()
  for (const label of labels.labels.filter(({ conversation }) => inHalf.has(conversation))) {
    const key = `${label.conversation} ${label.quotes.join(" ")}`
    const known = merged.get(key)
    if (known) known.numbers.push(label.number)
    else merged.set(key, { ...label, numbers: [label.number], texts: textsOf(label, spoken) })
  }
  return [...merged.values()]
}

function textsOf({ conversation, number, quotes }: Label, spoken: Map<string, StoredMessage[]>): string[] {
  const message = spoken.get(conversation)!.find((one) => one.number === number)
  const texts = message ? sentencesOf(message).filter((text) => quotes.includes(sentenceHash(text))) : []
  if (texts.length === 0) throw new Error(`${conversation}#${number} does not hold what was labelled`)
  return texts
}

function isSame(one: Found, { conversation, numbers, kind, texts }: Wanted): boolean {
  if (one.row.ref.id !== conversation || !numbers.includes(one.number)) return false
  return isSameQuote(
    { quote: one.quote, message: one.messages.find(({ number }) => number === one.number)! },
    kind,
    texts,
  )
}

function measureSuperseded(all: Found[], spoken: Map<string, StoredMessage[]>): void {
  const marks: { earlier: Found; later: Found }[] = []
  for (const made of Map.groupBy(all, ({ row }) => row.project).values()) {
    const byKey = new Map(made.map((one) => [one.key, one]))
    const ordered = made
      .toSorted((a, b) => (a.at ?? 0) - (b.at ?? 0) || a.number - b.number)
      .map((one) => ({ ...one, conversation: one.row.ref.id }))
    for (const [earlier, later] of findReversals(ordered))
      marks.push({ earlier: byKey.get(earlier)!, later: byKey.get(later)! })
  }
  const everywhere = wantedIn(new Set([...labels.conversations.held, ...labels.conversations.develop]), spoken)
  const at = ({ conversation, number, quote }: Place) =>
    everywhere.find(
      (one) => one.conversation === conversation && one.numbers.includes(number) && one.quotes.includes(quote),
    )!
  const pairs = labels.superseded.map(({ earlier, later, added_after }) => ({
    earlier: at(earlier),
    later: at(later),
    added_after,
  }))
  const first = pairs.filter(({ added_after }) => !added_after)
  const both = first.filter(({ earlier, later }) =>
    [earlier, later].every((label) => all.some((one) => isSame(one, label))),
  )
  const isMarked = (pair: (typeof pairs)[number]) =>
    marks.some(({ earlier, later }) => isSame(earlier, pair.earlier) && isSame(later, pair.later))
  const right = (of: typeof pairs) =>
    marks.filter((mark) => of.some((pair) => isSame(mark.earlier, pair.earlier) && isSame(mark.later, pair.later)))
      .length
  console.log(`\nSuperseded, in all conversations: ${marks.length} marked`)
  console.log(`  right, against the ${first.length} labelled pairs:  ${right(first)} of ${marks.length} marks`)
  if (pairs.length > first.length)
    console.log(`  right, after review:                ${right(pairs)} of ${marks.length} marks`)
  console.log(`  labelled pairs that are marked:     ${first.filter(isMarked).length} of ${first.length}`)
  console.log(`  … of those with both ends found:    ${both.filter(isMarked).length} of ${both.length}`)
  if (!values.show) return
  for (const { earlier, later } of marks) {
    const known = pairs.some((pair) => isSame(earlier, pair.earlier) && isSame(later, pair.later))
    console.log(`${known ? "RIGHT" : "OTHER"}\n    ${told(earlier)}\n    ${told(later)}`)
  }
  for (const pair of first)
    if (!isMarked(pair)) console.log(`NOT MARKED\n    ${pair.earlier.texts}\n    ${pair.later.texts}`)
}

function told({ kind, row, number, quote }: Found): string {
  return `${kind} ${formatRef({ ...row.ref, number })} ${plain(quote).slice(0, 300)}`
}

/** Wilson's 95 % interval. */
function share(part: number, of: number): string {
  if (of === 0) return "-"
  const [p, z] = [part / of, 1.96]
  const middle = (p + (z * z) / (2 * of)) / (1 + (z * z) / of)
  const side = (z * Math.sqrt((p * (1 - p)) / of + (z * z) / (4 * of * of))) / (1 + (z * z) / of)
  const percent = (value: number) => `${(100 * value).toFixed(0)}`
  return `${percent(p)} % (${percent(middle - side)}–${percent(middle + side)})`
}
