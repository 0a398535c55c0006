import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { openGenuineHome } from "../genuine-home.ts"
import { Absent } from "../set.ts"
import { phrasesIn, wordsOf } from "./words.ts"

// Titles of genuine conversations, compared with what a good one must contain, labelled by hand before titles were made this way.
//   npm run eval:titles -- [--show]     --show prints the titles of the half for building that lack something

/** For each conversation, groups of words and phrases (hashed): a good title has at least one of every group. */
type Labels = { build: string[]; held: string[]; labels: Record<string, string[][]> }

/** Titles that name nothing, whatever the conversation was about. */
const EMPTY_WORDS = new Set(
  "a all and btw commit continue do draft git go hello hey hi how in is it let s me merge next no now ok okay on open please pr pull push request review run start sure test tests that the then these this to too try us we yes you".split(
    " ",
  ),
)

const { values } = parseArgs({ options: { show: { type: "boolean", default: false } } })
const { labels, ...halves } = JSON.parse(readFileSync(new URL("labels.json", import.meta.url), "utf8")) as Labels

try {
  const home = await openGenuineHome()
  console.log("half    conversations  title has what it must      empty titles")
  for (const half of ["build", "held"] as const) {
    let [good, empty] = [0, 0]
    for (const id of halves[half]) {
      const row = await home.store.conversation({ source: "claude_code", id })
      if (!row) throw new Error(`conversation ${id} is not in the corpus`)
      const title = row.title?.text ?? ""
      if (isGood(title, labels[id]!)) good++
      else if (values.show && half === "build") console.log(`${id.slice(0, 8)}  ${row.title?.from}  ${title}`)
      if (isEmpty(title)) empty++
    }
    const total = halves[half].length
    const share = `${good} (${((100 * good) / total).toFixed(1)} %)`
    console.log(`${half.padEnd(7)} ${String(total).padStart(13)}  ${share.padEnd(24)} ${String(empty).padStart(14)}`)
  }
  home.close()
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.log(`NOT RUN: ${error.message}`)
}

function isGood(title: string, groups: string[][]): boolean {
  const phrases = phrasesIn(title)
  return groups.every((group) => group.some((phrase) => phrases.has(phrase)))
}

function isEmpty(title: string): boolean {
  return wordsOf(title).every((word) => EMPTY_WORDS.has(word) || /^\d+$/.test(word))
}
