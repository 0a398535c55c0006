export type EmbedRole = "query" | "document"

/** Turns text into vectors. Each id is a separate vector space: vectors of different ids are never compared. */
export type Embedder = {
  /** The id has the form provider:model@revision:dims:prompts and is stored with every vector. */
  readonly id: string
  readonly dims: number
  /** The longest text in tokens; longer texts are cut. */
  readonly maxTokens: number
  readonly normalized: boolean
  /** Returns one vector for each text, in the same order, or throws a DexError; never returns only some of them. */
  embed(texts: string[], options: { role: EmbedRole; signal?: AbortSignal }): Promise<Float32Array[]>
  /** Embeds the golden text. `golden` is the stored earlier answer; a different one means that the model has changed. */
  probe(golden?: Float32Array, signal?: AbortSignal): Promise<EmbedderProbe>
  dispose?(): Promise<void>
}

/** The result of a probe. `changed` is true if the server answers like a different model. */
export type EmbedderProbe = { ok: boolean; reason?: string; changed?: boolean; ms: number; vector?: Float32Array }

/** A model that scores documents against a query, in the given order; higher is better. */
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

/** A text that distinguishes two models, or two revisions of one: words, code and another script. Never change it. */
export const GOLDEN_TEXT = "The refresh token is rotated twice: const next = await rotate(token) // 更新された"
