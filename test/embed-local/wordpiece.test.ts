import { expect, test } from "vitest"
import { createTokenizer } from "../../packages/embed-local/src/wordpiece.ts"

const WORDS = [
  "[PAD]",
  "[UNK]",
  "[CLS]",
  "[SEP]",
  "token",
  "##s",
  "##ize",
  "re",
  "##new",
  "cafe",
  "!",
  "_",
  "更",
  "新",
  "i",
]
const tokenize = createTokenizer(`${WORDS.join("\n")}\n`)
const tokens = (text: string, most = 100) => tokenize(text, most).map((number) => WORDS[number])

test("takes the longest known beginning of a word, then the longest known rest", () => {
  expect(tokens("tokens tokenize renew")).toEqual(["[CLS]", "token", "##s", "token", "##ize", "re", "##new", "[SEP]"])
})

test("reads capitals and accents as plain letters", () => {
  expect(tokens("CAFÉ cafe\u0301 İ")).toEqual(["[CLS]", "cafe", "cafe", "i", "[SEP]"])
})

test("punctuation and Chinese characters are separate tokens", () => {
  expect(tokens("re_token!更新")).toEqual(["[CLS]", "re", "_", "token", "!", "更", "新", "[SEP]"])
})

test("a word with an unknown letter is completely unknown, and so is a word of more than 100 letters", () => {
  expect(tokens("tokenx re")).toEqual(["[CLS]", "[UNK]", "re", "[SEP]"])
  expect(tokens(`token${"s".repeat(96)}`)).toEqual(["[CLS]", "[UNK]", "[SEP]"])
})

test("control and invisible characters are left out", () => {
  expect(tokens("to\u0000k\u200ben\u001b re\u00a0re\u2028re")).toEqual(["[CLS]", "token", "re", "re", "re", "[SEP]"])
})

test("keeps both ends of a text that is too long, and adds both ends to an empty one", () => {
  expect(tokens("tokens tokens tokens", 4)).toEqual(["[CLS]", "token", "##s", "[SEP]"])
  expect(tokens("")).toEqual(["[CLS]", "[SEP]"])
})

test("refuses a vocabulary that is not BERT's", () => {
  expect(() => createTokenizer("one\ntwo\n")).toThrow("[CLS]")
})
