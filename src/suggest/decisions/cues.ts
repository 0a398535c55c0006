// The words by which people state a lasting choice, ask for work, report or doubt. Data: `npm run eval:cues` counts in how
// many conversations each one occurs, and none of them may be the word of a single one.
//
// A phrase is words in a row. `a/b` is either (`_` is a blank in one of them), `~` is up to two words of any kind, `…` up to ten within a clause. `^` stands for
// the sentence's beginning, after words like "ok, and also", `$` for its end.

/** How people say that something is to be so, and how much each says. */
export const STATES: readonly [weight: number, phrases: readonly string[]][] = [
  [3, ["decided"]],
  [
    2,
    [
      "^ … should/shouldn't/must/needs_to/has_to/have_to",
      "we/it/this/that/there/they … should/shouldn't/must/need_to/needs_to/has_to/have_to",
    ],
  ],
  [1, ["should/shouldn't/must", "should/must not", "should/must only/always/never"]],
  [2, ["i don't want/like"]],
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
  [1, ["let's/lets ~ use/keep/remove/drop/rename/skip/set/replace/include/only/not"]],
  [2, ["^ do_not/don't/never/always/keep/use/make_sure/ensure/remove/drop/avoid/prefer/leave/only"]],
  [2, ["it/this/that/they ~ needs"]],
  [3, ["let's not"]],
  [2, ["option/approach 1/2/3/4/a/b/c/d", "the right approach/thing/way"]],
  [2, ["is/it's/are/that's ~ fine/ok/okay/acceptable/redundant"]],
  [2, ["only $"]],
]

/** What often stands beside it, and as often elsewhere: a contrast, a reason, a rule's reach, an answer's beginning. */
export const SUPPORTS: readonly (readonly string[])[] = [
  ["instead of", "rather than", "and/but not"],
  [", not", "instead", "no need", "no longer", "anymore/any_more", "back to"],
  ["always/never/only/must/everywhere/by_default/source_of_truth/entirely/completely/at_least"],
  ["because/since/so_that/so_we/due_to/otherwise/the_reason"],
  ["we ~ keep/use/allow/show/store"],
  ["for now"],
]

/** Work that ends with this conversation. */
export const TASKS: readonly string[] = [
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

/** Not sure yet. */
export const DOUBTS: readonly string[] = [
  "wonder/wondering",
  "maybe",
  "perhaps",
  "not sure",
  "i guess",
  "presumably",
  "any ideas/thoughts",
  "what do you think",
  "considering",
]

/** What happens, not what ought to. */
export const REPORTS: readonly string[] = [
  "bug/bugs/broken",
  "fails/failed/failing/failure",
  "the/this/following error",
  "get/got/getting ~ error",
  "errors",
  "not working",
  "doesn't work",
  "i ~ got/get/see/saw/noticed/tried/had/ran",
  "seems to",
  "seem to",
  "looks/look like",
  "this means",
  "should have been/the",
  "should … already",
  "for example",
  "you ~ put",
]
