import { parseCompleteRef } from "../../src/core/ref.ts"
import type { Item, ItemKind } from "../../src/core/suggestion.ts"
import type { ConversationRow, HistoryReader } from "../../src/store/history/store.ts"
import { type Half, wordsIn } from "./labels.ts"

// At each drawn prompt, was it right to speak?
//
// The rules, written before the hook was changed:
// - A rule is an offer that quotes what was said or done. It is right if it points at a labelled helpful message (see moments.ts),
//   and it holds the sentence if it contains at least ENOUGH of the labelled sentence's words.
// - A one-line ref points at a conversation. It is right if that conversation is labelled as helpful or related, or, where
//   anything is, if it is on the branch of one that is; main branches do not count.
// - Whatever is offered where nothing helps or relates is needless.

const RULES: readonly ItemKind[] = ["fix", "decision"]
const LINES: readonly ItemKind[] = ["conversation"]
const ENOUGH = 0.6
const MAIN_BRANCH = /^(?:main|master|HEAD)$/

export type PromptLabel = {
  verdict: "helps" | "related" | "nothing"
  /** `sentence` is where the sentence that helps begins and ends in the message's texts, which are joined by line breaks. */
  helpful: { ref: string; sentence?: [from: number, to: number] }[]
  related: { ref: string }[]
}

/** What was offered at one prompt. */
export type PromptResult = {
  half: Half
  verdict: PromptLabel["verdict"]
  spoken: boolean
  /** For each rule. */
  rules: { right: boolean; holdsSentence: boolean }[]
  /** For each one-line ref, whether it is right. */
  lines: boolean[]
}

/** `helpful` says of each item whether it points at a labelled message. */
export async function judgePrompt(
  store: HistoryReader,
  half: Half,
  label: PromptLabel,
  items: Item[],
  helpful: boolean[],
): Promise<PromptResult> {
  const sentences = await Promise.all(label.helpful.map((one) => sentenceOf(store, one)))
  const labelled = [...label.helpful, ...label.related].map(({ ref }) => parseCompleteRef(ref)!.id)
  const rows = await Promise.all(labelled.map((id) => store.conversation({ source: "claude_code", id })))
  const branches = new Set(rows.flatMap((row) => ownBranch(row) ?? []))
  const isSameWork = async ({ ref }: Item) => {
    const id = ref === undefined ? undefined : parseCompleteRef(ref)?.id
    if (id === undefined) return false
    const branch = ownBranch(await store.conversation({ source: "claude_code", id }))
    return labelled.includes(id) || (branch !== undefined && branches.has(branch))
  }
  return {
    half,
    verdict: label.verdict,
    spoken: items.length > 0,
    rules: items.flatMap((item, i) =>
      RULES.includes(item.kind)
        ? { right: helpful[i]!, holdsSentence: sentences.some((sentence) => contains(item, sentence)) }
        : [],
    ),
    lines: await Promise.all(items.filter(({ kind }) => LINES.includes(kind)).map(isSameWork)),
  }
}

/** Counts and shares by the rules above, for the results of one half. */
export function promptFigures(results: PromptResult[]): Record<string, string | number> {
  const count = (isCounted: (result: PromptResult) => boolean) => results.filter(isCounted).length
  const rules = results.flatMap((result) => result.rules)
  const lines = results.flatMap((result) => result.lines)
  const right = rules.filter((rule) => rule.right)
  const needless = results.filter(({ verdict }) => verdict === "nothing")
  return {
    prompts: results.length,
    "something helps": count(({ verdict }) => verdict === "helps"),
    "something is about the same work": count(({ verdict }) => verdict === "related"),
    "spoken at": count(({ spoken }) => spoken),
    "rules quoted at": count((result) => result.rules.length > 0),
    "rules that are right": `${right.length} of ${rules.length}`,
    "… that contain the sentence": `${right.filter(({ holdsSentence }) => holdsSentence).length} of ${right.length}`,
    "one-line refs at": count((result) => result.lines.length > 0),
    "one-line refs about the same work": `${lines.filter((line) => line).length} of ${lines.length}`,
    "spoken where nothing helps or relates": `${needless.filter(({ spoken }) => spoken).length} of ${needless.length}`,
  }
}

async function sentenceOf(store: HistoryReader, { ref, sentence }: PromptLabel["helpful"][number]): Promise<string> {
  if (sentence === undefined) return ""
  const { source, id, number } = parseCompleteRef(ref)!
  const [message] = await store.messages({ source, id }, [number!])
  const texts = message?.parts.flatMap((part) => (part.type === "text" ? part.text : [])) ?? []
  const text = texts.join("\n").slice(...sentence)
  if (text.length !== sentence[1] - sentence[0]) throw new Error(`${ref} is shorter than what was labelled`)
  return text
}

function contains({ title, summary, reason }: Item, sentence: string): boolean {
  const offered = new Set(wordsIn(`${title} ${summary} ${reason}`))
  const wanted = new Set(wordsIn(sentence))
  return wanted.size > 0 && [...wanted].filter((word) => offered.has(word)).length >= ENOUGH * wanted.size
}

function ownBranch(row: ConversationRow | undefined): string | undefined {
  return row?.git_branch === undefined || MAIN_BRANCH.test(row.git_branch) ? undefined : row.git_branch
}
