import { createHash } from "node:crypto"
import type { StoredMessage } from "../../src/store/history/store.ts"

/** A sentence as it is stored in the labels. */
export function sentenceHash(sentence: string): string {
  return createHash("sha256").update(plain(sentence)).digest("hex").slice(0, 12)
}

export function plain(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim()
}

/** Everything in a message that a label may refer to: its sentences, and each question that it answers. */
export function sentencesOf(message: StoredMessage): string[] {
  return message.parts.flatMap((part) => {
    if (part.type === "text") return split(part.text)
    return part.type === "tool_result" ? [...split(part.text), ...answered(part.text)] : []
  })
}

function split(text: string): string[] {
  return text
    .split("\n")
    .flatMap((line) => line.split(/(?<=[.!?])\s+/))
    .map(plain)
    .filter((sentence) => sentence !== "")
}

function answered(text: string): string[] {
  return [...text.matchAll(/"([^"]{1,2000})"="/g)].map(([, question]) => plain(question!))
}
