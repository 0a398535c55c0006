// The words with which people state a lasting choice or ask for work. `npm run eval:cues` counts how many conversations contain
// each phrase. A phrase that occurs in only one conversation must not be added.
//
// A phrase is a sequence of words. `a/b` is either word (`_` is a blank in one of them), `~` is up to two words, `…` is up
// to ten words within a clause. `^` is the start of the sentence, after words like "ok, and also"; `$` is its end.

/** Phrases that state a choice, with their weights. */
export const STATING_PHRASES: readonly [weight: number, phrases: readonly string[]][] = [
  [3, ["decided"]],
  [
    2,
    [
      "^ … should/shouldn't/must/needs_to/has_to/have_to",
      "we/it/this/that/there/they … should/shouldn't/must/need_to/needs_to/has_to/have_to",
    ],
  ],
  [2, ["we ~ want/need/prefer", "we don't want/need", "we removed"]],
  [
    2,
    [
      "i ~ want/prefer/suggest/expect",
      "i'd ~ like/prefer/keep/use/rather/go_with/say",
      "i would ~ like/prefer/keep/expect",
    ],
  ],
  [
    2,
    [
      "let's/lets ~ use/keep/remove/drop/rename/call/make/set/add/replace/apply/include/skip/move/adjust/do/hide/store/have/try/implement/update/change/put/switch/focus/disable/show",
      "go with",
    ],
  ],
  [2, ["^ do_not/don't/never/always/keep/use/make_sure/ensure/remove/drop/avoid/prefer/leave/only"]],
  [2, ["it/this/that/they ~ needs"]],
  [3, ["let's not"]],
  [2, ["option/approach 1/2/3/4/a/b/c/d", "the right approach/thing/way"]],
]

/** Words for the scope of a rule. They occur in rules and elsewhere equally often. */
export const SCOPE_PHRASES: readonly string[] = [
  "always/never/only/must/everywhere/by_default/source_of_truth/entirely/completely/at_least",
]

/** Phrases for work that ends with this conversation. */
export const TASK_PHRASES: readonly string[] = [
  "commit this/it/the/and",
  "push",
  "pull request",
  "pr/prs",
  "rebase",
  "merge from/main/with",
  "merge conflict/conflicts",
  "draft",
  "this branch",
  "new branch",
  "branch name",
  "linear",
  "log this/an",
  "move on",
  "look at",
  "take a look",
  "^ check",
  "double check",
  "review",
  "investigate",
  "debugging",
  "write/create/generate/give ~ summary",
  "explain this/to",
  "read the",
  "show me",
  "give me",
  "tell me",
  "let me",
  "run the/it/them/mise/npm/all",
  "fix it/them/the/this/all/that/both/lint",
  "add/write/create/have ~ test/tests",
  "test case/coverage",
  "integration tests/test",
  "come back",
  "later",
  "screenshot",
  "can/could/would you",
  "write down/the/this",
  "let's first/start/create/write/continue/address",
  "let's implement/do this/that/it",
  "like to explain/generate/verify",
  "want to start/see/give",
  "you update",
  "like to see/know/understand/do/refactor",
  "want you to",
  "let's discuss/talk/see/think",
  "update the docs/readme/plan/documentation",
  "we need/want a/the/an ~ plan/section/doc/design",
  "write/create/make/update ~ plan",
  "go ahead",
  "try again",
]

/** Words that may begin any sentence. */
const SENTENCE_OPENERS =
  "(?:(?:and|also|please|but|so|then|ok|okay|no|nope|nah|yes|yeah|sure|hmm|actually|alright|well|oh|ah|now)[\\s,.:!-]+){0,4}"

const WILDCARDS: Record<string, string> = { "~": "(?:[^\\s,;]+\\s+){0,2}?", "…": "(?:[^\\s,;:]+\\s+){0,10}?" }

/** Builds a pattern that matches any of the phrases, ignoring case. */
export function anyPhrase(phrases: readonly string[]): RegExp {
  return new RegExp(phrases.map((phrase) => `(?:${patternSource(phrase)})`).join("|"), "i")
}

function patternSource(phrase: string): string {
  const starts = phrase.startsWith("^ ")
  const ends = phrase.endsWith(" $")
  const words = phrase.replace(/^\^ /, "").replace(/ \$$/, "")
  const body = words
    .split(/ (?=[~…])|(?<=[~…]) /)
    .map((piece) => WILDCARDS[piece] ?? `${alternatives(piece)}(?:\\s+|(?=[^\\w'])|$)`)
    .join("")
  const wordStart = /^\w/.test(words) ? "(?<![\\w'])" : ""
  return `${starts ? `^${SENTENCE_OPENERS}` : wordStart}${body}${ends ? "[\\s.!]*$" : ""}`
}

function alternatives(piece: string): string {
  return piece
    .split(" ")
    .map((word) => (word.includes("/") ? `(?:${word.split("/").map(escapeWord).join("|")})` : escapeWord(word)))
    .join("\\s+")
}

function escapeWord(word: string): string {
  return word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("_", "\\s+")
}
