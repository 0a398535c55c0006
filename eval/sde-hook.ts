import { rmSync } from "node:fs"
import { join } from "node:path"
import { charactersWithin } from "../src/core/tokens.ts"
import { wordsIn } from "./answers/labels.ts"
import { CACHE_DIR, uuidOf } from "./home.ts"
import { makeHookHome } from "./hook-home.ts"
import type { Chat } from "./set.ts"
import { type BugReport, ruleOf, taskOf } from "./sets/sde.ts"

// What does the hook say at the prompt of a bug report?
//
// The rules, written before the hook could say anything:
// - It is right if it names the deciding conversation (the later one, if the rule was changed) by its ref, or repeats at least
//   QUOTE_WORDS words in a row of it that are not in the prompt. The twin of a task decided the same rule, so it is right too.
// - The share of a policy is that of its content words in the first MAX_TOKENS of what is said, without dex's heading.
// - A change is told if the later conversation is right, and a line that names the earlier one says that it changed.

const QUOTE_WORDS = 8
const MAX_TOKENS = 400
const ENOUGH = 0.6
const CHANGE_WORD = /\b(?:chang|replac|supersed|amend|revers|overtak|no longer)/i
const FUNCTION_WORDS = new Set("the and for with only when not are that from into then but any all".split(" "))

export type HookFigures = {
  reports: number
  spoken: number
  right: number
  /** Spoken although no conversation of the report's task or its twin is there. */
  spoken_without: number
  /** Mean share of the policy's content words. */
  share: number
  /** Reports with at least ENOUGH of them. */
  enough: number
  changed: number
  /** The newer rule is given, and the older is named as changed. */
  told: number
  /** `dex search` with the report gives the newer conversation first, or says that the older was changed in it. */
  marked: number
  failures: string[]
}

/** All tasks' conversations in one history, or a history for each task. Unrelated conversations are in each. */
export async function measureHook(
  chats: Chat[],
  reports: BugReport[],
  histories: "one" | "each",
): Promise<HookFigures> {
  const dir = join(CACHE_DIR, `sde-hook-${process.pid}`)
  const none = {
    spoken: 0,
    right: 0,
    spoken_without: 0,
    share: 0,
    enough: 0,
    told: 0,
    marked: 0,
    failures: [] as string[],
  }
  const sum: HookFigures = { reports: reports.length, changed: 0, ...none }
  const earlierOf = new Map(reports.flatMap((one) => (one.changedBy ? [[one.changedBy, one.decidedIn] as const] : [])))
  const homeOf = (name: string, some: Chat[]) => makeHookHome(join(dir, name), some, (id) => earlierOf.get(id))
  const unrelated = chats.filter(({ id }) => taskOf(id) === undefined)
  const shared = histories === "one" ? await homeOf("all", chats) : await homeOf("unrelated", unrelated)
  for (const [rule, related] of Map.groupBy(reports, ({ task }) => ruleOf(task))) {
    const without =
      histories === "one"
        ? await homeOf(
            "without",
            chats.filter(({ id }) => !isAbout(id, rule)),
          )
        : shared
    const decidedIn = related.map(({ decidedIn, changedBy }) => changedBy ?? decidedIn)
    for (const report of related) {
      const own = chats.filter(({ id }) => taskOf(id) === report.task)
      const home = histories === "one" ? shared : await homeOf("task", [...unrelated, ...own])
      const said = await home.say(report.text)
      const deciding = chats.filter(({ id }) => decidedIn.includes(id))
      const { right, share, told } = judge(said, report, deciding)
      if (said !== "") sum.spoken++
      if (right) sum.right++
      if ((await without.say(report.text)) !== "") sum.spoken_without++
      sum.share += share / reports.length
      if (share >= ENOUGH) sum.enough++
      if (report.changedBy !== undefined) {
        sum.changed++
        if (told) sum.told++
        if (isMarked(await home.dex(["search", report.text, "--json"]), report)) sum.marked++
      }
      if (home !== shared) sum.failures.push(...home.failures())
    }
    if (without !== shared) sum.failures.push(...without.failures())
  }
  sum.failures.push(...shared.failures())
  rmSync(dir, { recursive: true, force: true })
  return sum
}

type Judgement = { right: boolean; share: number; told: boolean }

/** `deciding` are the conversations any of which is right. */
export function judge(said: string, { text, policy, decidedIn, changedBy }: BugReport, deciding: Chat[]): Judgement {
  const right = deciding.some((chat) => isGiven(chat, said, text))
  const told = right && changedBy !== undefined && isNamedAsChanged(decidedIn, said)
  return { right, share: policyShare(said, policy), told }
}

function isAbout(chat: string, rule: string): boolean {
  const task = taskOf(chat)
  return task !== undefined && ruleOf(task) === rule
}

/** Whether the text names the conversation, or repeats some of its words that the prompt does not contain. */
function isGiven({ id, docs }: Chat, said: string, prompt: string): boolean {
  if (isNamed(id, said)) return true
  const spoken = ` ${wordsIn(said).join(" ")} `
  const asked = ` ${wordsIn(prompt).join(" ")} `
  return docs.some(({ text }) => {
    const words = wordsIn(text)
    return words.some((_, from) => {
      const run = words.slice(from, from + QUOTE_WORDS)
      const quote = ` ${run.join(" ")} `
      return run.length === QUOTE_WORDS && spoken.includes(quote) && !asked.includes(quote)
    })
  })
}

function isNamed(chat: string, text: string): boolean {
  const id = uuidOf(chat)
  return [...text.matchAll(/claude_code:([0-9a-f-]{4,})/g)].some(([, prefix]) => id.startsWith(prefix!))
}

function isMarked(printed: string, { decidedIn, changedBy }: BugReport): boolean {
  const { results } = JSON.parse(printed) as { results: { id: string; changed_later?: { ref: string } }[] }
  const found = results.find(({ id }) => isNamed(decidedIn, id) || isNamed(changedBy!, id))
  return found !== undefined && (isNamed(changedBy!, found.id) || isNamed(changedBy!, found.changed_later?.ref ?? ""))
}

function isNamedAsChanged(chat: string, said: string): boolean {
  return said.split("\n").some((line) => isNamed(chat, line) && CHANGE_WORD.test(line))
}

function policyShare(said: string, policy: string): number {
  const lines = said.split("\n").filter((line) => !/^(?:<|From dex, )/.test(line))
  const read = new Set(contentWords(lines.join("\n").slice(0, charactersWithin(MAX_TOKENS))))
  const wanted = new Set(contentWords(policy))
  return [...wanted].filter((word) => read.has(word)).length / wanted.size
}

function contentWords(text: string): string[] {
  const words = text.toLowerCase().match(/[a-z0-9_]{3,}/g) ?? []
  return words.filter((word) => !FUNCTION_WORDS.has(word))
}
