export type EmbedRole = "query" | "document"

/** Turns text into vectors. Each id is a separate vector space: vectors of different ids are never compared. */
export type Embedder = {
  /** `provider:model@revision:dims:prompts`, stored with every vector. */
  readonly id: string
  readonly dims: number
  /** The token limit of a text. Longer texts are cut. */
  readonly maxTokens: number
  readonly normalized: boolean
  /** One vector for each text, in the same order, or a DexError; never only some of them. */
  embed(texts: string[], options: { role: EmbedRole; signal?: AbortSignal }): Promise<Float32Array[]>
  /** Embeds the golden text. `golden` is the stored earlier answer; a different one means that the model has changed. */
  probe(golden?: Float32Array, signal?: AbortSignal): Promise<EmbedderProbe>
  dispose?(): Promise<void>
}

/** `changed`: the server answers, but with another model. */
export type EmbedderProbe = { ok: boolean; reason?: string; changed?: boolean; ms: number; vector?: Float32Array }

/** Scores documents against a query, in the given order; higher is better. */
export type Reranker = {
  readonly id: string
  rerank(query: string, documents: string[], options?: { signal?: AbortSignal }): Promise<number[]>
}

export type EmbedSettings = {
  provider: "none" | "local" | "openai" | "ollama"
  /** dex's own folder, where the local model is installed. Only the local provider needs it. */
  dexDir?: string
  /** The server's address; each provider has a default. */
  url?: string
  model?: string
  dims?: number
  apiKey?: string
}

/** A text with words, code and another script: enough to distinguish two models, or two revisions of one. Never change it. */
export const GOLDEN_TEXT = "The refresh token is rotated twice: const next = await rotate(token) // 更新された"
