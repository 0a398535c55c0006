import type { ModelServerRequest, Script } from "../support/model-server.ts"

// A model for maps that follows the task: one item for every conversation it is shown, and merges that lose nothing.

export type Item = { text: string; refs: string[] }

export function promptOf({ body }: ModelServerRequest): string {
  return body.messages.at(-1)!.content!
}

export function isMerge(asked: ModelServerRequest): boolean {
  return asked.body.messages[0]!.content!.startsWith("You merge")
}

/** The refs of the messages in the data, by conversation. */
export function refsIn(asked: ModelServerRequest): string[] {
  let conversation = ""
  return promptOf(asked)
    .split("\n")
    .flatMap((line) => {
      conversation = /^=== (\S+)/.exec(line)?.[1] ?? conversation
      const number = /^#(\d+) (?!goes on)/.exec(line)?.[1]
      return number === undefined ? [] : [`${conversation}#${number}`]
    })
}

export function itemsFor(asked: ModelServerRequest): Item[] {
  if (isMerge(asked)) return [...promptOf(asked).matchAll(/^\| (\{.*\})$/gm)].map(([, json]) => JSON.parse(json!))
  const refs = refsIn(asked)
  const conversations = [...new Set(refs.map((ref) => ref.split("#")[0]!))]
  return conversations.map((name) => ({
    text: `seen ${name}`,
    refs: refs.filter((ref) => ref.startsWith(`${name}#`)).slice(0, 2),
  }))
}

export const faithful: Script = (asked) => [
  { text: JSON.stringify({ items: itemsFor(asked) }) },
  { usage: { prompt_tokens: Math.ceil(JSON.stringify(asked.body.messages).length / 4), completion_tokens: 10 } },
]
