import { expect, test } from "vitest"
import { findJson } from "../../src/llm/reply.ts"

test.each([
  ['{"a":1}', { a: 1 }],
  ["\n [1, 2] \n", [1, 2]],
  ['Here you are:\n```json\n{"a": "```x"}\n```\nAnything else?', { a: "```x" }],
  ['Here you are:\n```json\n{"a": 1}\n```\nAnything else?', { a: 1 }],
  ["```\n[1]\n```", [1]],
  ["```JSON\n{}\n```", {}],
  ["```sh\nls\n```\n```json\n[2]\n```", [2]],
  ['The answer is {"a": {"b": []}}. I hope that it helps.', { a: { b: [] } }],
  ['{"a": 1', undefined],
  ['{"a": 1} and {"b": 2}', undefined],
  ["I cannot do that.", undefined],
  ["", undefined],
])("the JSON in %j is %j", (text, value) => {
  expect(findJson(text)).toEqual(value)
})
