import type { EmbedRole } from "./embedder.ts"

/** What is known of a family of models: what it wants to read before a text, and how much it reads. */
export type Family = {
  /** Part of the embedder's id: raised when the words before a text change. */
  prompts: string
  before: Record<EmbedRole, string>
  maxTokens: number
  /** Answers in fewer dimensions when it is asked to. */
  shortens: boolean
}

const DEFAULT: Family = { prompts: "p0", before: { query: "", document: "" }, maxTokens: 2048, shortens: false }

const SENTENCE = { query: "Represent this sentence for searching relevant passages: ", document: "" }
const PASSAGE = { query: "query: ", document: "passage: " }

/** The first that fits the model's name. The words are the ones that each family was trained with. */
const FAMILIES: [RegExp, Partial<Family>][] = [
  [/text-embedding-3/, { maxTokens: 8191, shortens: true }],
  [/text-embedding-ada/, { maxTokens: 8191 }],
  [/nomic-embed-text/, { prompts: "p1", before: { query: "search_query: ", document: "search_document: " } }],
  [/arctic-embed(2|-[ml]-v2)/, { prompts: "p1", before: { query: "query: ", document: "" }, maxTokens: 8192 }],
  [/arctic-embed|mxbai-embed/, { prompts: "p1", before: SENTENCE, maxTokens: 512 }],
  [/bge-m3/, { maxTokens: 8192 }],
  [/bge-(small|base|large)-en/, { prompts: "p1", before: SENTENCE, maxTokens: 512 }],
  [/\be5-(small|base|large)(?!.*instruct)/, { prompts: "p1", before: PASSAGE, maxTokens: 512 }],
  [/minilm|gte-(small|base|large)/, { maxTokens: 512 }],
]

export function familyOf(model: string): Family {
  const known = FAMILIES.find(([name]) => name.test(model.toLowerCase()))?.[1]
  return { ...DEFAULT, ...known }
}

/** How much of a token a character takes at most, nearly: dense code reads at 2.5 characters a token, Chinese at one. */
const ASCII_TOKENS = 0.4

/** What a model is given: the words before, and as much of the text as fits for certain. */
export function preparedText(text: string, role: EmbedRole, family: Family): string {
  const before = family.before[role]
  return (
    before + cut(text.toWellFormed().trim() || "(empty)", family.maxTokens - Math.ceil(before.length * ASCII_TOKENS))
  )
}

function cut(text: string, maxTokens: number): string {
  if (text.length <= maxTokens) return text
  let tokens = 0
  let end = 0
  for (const character of text) {
    tokens += character.charCodeAt(0) < 128 ? ASCII_TOKENS : character.length
    if (tokens > maxTokens) return text.slice(0, end)
    end += character.length
  }
  return text
}
