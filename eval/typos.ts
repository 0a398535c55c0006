import { messageText } from "../src/core/format.ts"
import { correctWords } from "../src/search/forgive.ts"
import { parseQuery } from "../src/search/query.ts"
import { searchHistory } from "../src/search/search.ts"
import { searchAsYouType } from "../src/search/typing.ts"
import { openGenuineHome } from "./genuine-home.ts"
import { generator } from "./metrics.ts"
import { Absent } from "./set.ts"

// Words of the genuine conversations, mistyped by one letter, and as prefixes while they are being typed.
//   npm run eval:typos

const WORDS = 500
const BEGUN = 200
const LEAST_LETTERS = 5
const LEAST_CONVERSATIONS = 3
/** As in `dex search`. */
const FEW = 10
const LETTERS = "abcdefghijklmnopqrstuvwxyz"

try {
  const home = await openGenuineHome()
  const { store, index } = home
  const holders = new Map<string, Set<string>>()
  const { rows } = await store.list({ limit: 1_000, offset: 0 })
  for (const { ref } of rows)
    for (const message of await store.messages(ref))
      for (const word of new Set(
        messageText(message, "full")
          .toLowerCase()
          .match(/[\p{L}\p{N}]+/gu) ?? [],
      ))
        if (holders.has(word)) holders.get(word)!.add(ref.id)
        else holders.set(word, new Set([ref.id]))
  const random = generator(7)
  const ordinary = [...holders]
    .filter(([word, ids]) => /^[a-z]+$/.test(word) && word.length >= LEAST_LETTERS && ids.size >= LEAST_CONVERSATIONS)
    .map(([word]) => word)
    .sort()
  const drawn = shuffled(ordinary, random)

  let [first, among, tried, longest] = [0, 0, 0, 0]
  for (const word of drawn.slice(0, WORDS)) {
    let typed = mistyped(word, random)
    while (holders.has(typed) || (await index.count({ match: [{ words: typed }] })).total > 0)
      typed = mistyped(word, random)
    const started = performance.now()
    const by =
      (await correctWords({ store, index, hidden: [], maxMessages: FEW }, parseQuery(`the ${typed} here`)))?.replaced[0]
        ?.by ?? []
    longest = Math.max(longest, performance.now() - started)
    tried++
    if (by[0] === word) first++
    if (by.includes(word)) among++
  }
  const share = (count: number, of: number) => `${((100 * count) / of).toFixed(1)} %`
  console.log(
    `${tried} words, one edit each: ${share(first, tried)} corrected, ${share(among, tried)} among three offered; ${Math.round(longest)} ms at the longest`,
  )

  let [whole, prefixes, vanished] = [0, 0, 0]
  for (const word of drawn.slice(WORDS, WORDS + BEGUN)) {
    let isFound = true
    for (let length = 4; length <= word.length; length++) {
      const query = parseQuery(word.slice(0, length))
      const asked = { query, by: "conversation" as const, limit: 20, offset: 0 }
      const exact = await searchHistory(store, index, asked)
      const forgiven =
        exact.total <= FEW ? await correctWords({ store, index, hidden: [], maxMessages: FEW }, query) : undefined
      const found = forgiven ? await searchHistory(store, index, { ...asked, query: forgiven.query }) : exact
      prefixes++
      if (found.hits.length === 0) vanished++
      if (!found.hits.some(({ row }) => holders.get(word)!.has(row.ref.id))) isFound = false
    }
    if (isFound) whole++
  }
  console.log(
    `${BEGUN} words while they are typed (${prefixes} beginnings): ${share(whole, BEGUN)} always find a conversation with the word among 20; nothing was found for ${vanished} beginnings`,
  )

  let [typedWhole, typedPrefixes, typedVanished] = [0, 0, 0]
  for (const word of drawn.slice(WORDS, WORDS + BEGUN)) {
    let isFound = true
    for (let length = 4; length <= word.length; length++) {
      const rows = await searchAsYouType(store, index, { text: word.slice(0, length), limit: 20 })
      typedPrefixes++
      if (rows.length === 0) typedVanished++
      if (!rows.some(({ ref }) => holders.get(word)!.has(ref.id))) isFound = false
    }
    if (isFound) typedWhole++
  }
  console.log(
    `the same without ranking, after each key (${typedPrefixes}): ${share(typedWhole, BEGUN)} always find a conversation with the word among 20; nothing was found for ${typedVanished} beginnings`,
  )
  home.close()
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.log(`NOT RUN: ${error.message}`)
}

function mistyped(word: string, random: () => number): string {
  const at = Math.floor(random() * word.length)
  const letter = LETTERS[Math.floor(random() * LETTERS.length)]!
  switch (Math.floor(random() * 4)) {
    case 0:
      return word.slice(0, at) + letter + word.slice(at)
    case 1:
      return word.slice(0, at) + word.slice(at + 1)
    case 2:
      return word.slice(0, at) + letter + word.slice(at + 1)
    default:
      return at === 0
        ? word[1]! + word[0]! + word.slice(2)
        : word.slice(0, at - 1) + word[at]! + word[at - 1]! + word.slice(at + 1)
  }
}

function shuffled<T>(list: T[], random: () => number): T[] {
  return list
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}
