import { readFileSync } from "node:fs"
import { anyPhrase, SCOPE_PHRASES, STATING_PHRASES, TASK_PHRASES } from "../../src/learn/decisions/cues.ts"
import { sentencesOf, typedLines } from "../../src/learn/decisions/typed.ts"
import type { HistoryReader } from "../../src/store/history/store.ts"
import { openDecisionsHome, type Place } from "../answers/decisions-home.ts"
import { openGenuineHome } from "../genuine-home.ts"
import { Absent } from "../set.ts"

// Whether each cue, and each word in it, occurs in more than one conversation: a word of a single one belongs to its writer, not
// to the language.
//   npm run eval:cues

/** The words of a cue, including those of all its alternatives (`a/b`). */
function wordsOf(cue: string): string[] {
  return cue.split(/[ /]/).filter((word) => /\w/.test(word))
}

async function typedIn(store: HistoryReader): Promise<string[][]> {
  const { rows } = await store.list({ limit: 100_000, offset: 0, kinds: ["person"] })
  const chats: string[][] = []
  for (const { ref } of rows) {
    const parts = (await store.messages(ref)).flatMap(({ parts }) => parts)
    const texts = parts.flatMap((part) => (part.type === "text" && part.origin === "person" ? part.text : []))
    chats.push(texts.flatMap((text) => typedLines(text.slice(0, 20_000)).flatMap(sentencesOf)))
  }
  return chats
}

try {
  const lines = readFileSync(new URL("../answers/decisions.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n")
  const places = lines.map((line) => JSON.parse(line) as Place)
  const chats: string[][] = []
  for (const home of [await openGenuineHome(), await openDecisionsHome(places)]) {
    chats.push(...(await typedIn(home.store)))
    home.close()
  }
  const cues = [...STATING_PHRASES.flatMap(([, phrases]) => phrases), ...SCOPE_PHRASES, ...TASK_PHRASES]
  const holding = (phrase: string) => {
    const pattern = anyPhrase([phrase])
    return chats.filter((sentences) => sentences.some((sentence) => pattern.test(sentence))).length
  }
  const words = [...new Set(cues.flatMap(wordsOf))]
  const rare = [...new Set([...words, ...cues])].filter((one) => holding(one) < 2)
  console.log(`${cues.length} cues of ${words.length} words, ${chats.length} conversations that a person led`)
  console.log(rare.length === 0 ? "each occurs in at least two" : `in fewer than two:\n${rare.join("\n")}`)
  process.exitCode = rare.length === 0 ? 0 : 1
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.log(`NOT RUN: ${error.message}`)
}
