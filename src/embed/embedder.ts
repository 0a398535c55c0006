export type EmbedRole = "query" | "document"

/** Turns text into vectors. Vectors from embedders with different ids are never compared. */
export type Embedder = {
  /** The id has the form `provider:model@revision:dims:prompts`. It is stored with every vector. */
  readonly id: string
  readonly dims: number
  /** The maximum number of tokens of a text. Longer texts are cut. */
  readonly maxTokens: number
  readonly normalized: boolean
  /** Returns one vector for each text, in the same order. Throws a DexError if any of the texts fails. */
  embed(texts: string[], options: { role: EmbedRole; signal?: AbortSignal }): Promise<Float32Array[]>
  /**
   * Embeds the golden text. `golden` is the vector that was stored for it earlier; if the new one differs, the model has
   * changed.
   */
  probe(golden?: Float32Array, signal?: AbortSignal): Promise<EmbedderProbe>
  dispose?(): Promise<void>
}

/** `changed` is true if the server answers, but uses another model than before. */
export type EmbedderProbe = { ok: boolean; reason?: string; changed?: boolean; ms: number; vector?: Float32Array }

/** Scores how well documents match a query. Returns the scores in the order of the documents; a higher score is better. */
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

/**
 * A text with English words, code and Japanese, which is enough to distinguish two models or two revisions of a model. Never
 * change it.
 */
export const GOLDEN_TEXT = "The refresh token is rotated twice: const next = await rotate(token) // 更新された"
