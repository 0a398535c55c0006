export type EmbedRole = "query" | "document"

/** Turns text into vectors. Another id is another space: vectors of two ids are never compared. */
export type Embedder = {
  /** provider:model@revision:dims:prompts. Stored with every vector. */
  readonly id: string
  readonly dims: number
  /** Longer texts are cut. */
  readonly maxTokens: number
  readonly normalized: boolean
  /** One vector for each text, in the same order, or a DexError; never some of them. */
  embed(texts: string[], options: { role: EmbedRole; signal?: AbortSignal }): Promise<Float32Array[]>
  /** Embeds the golden text. `golden`: the answer that was kept from before; another one now means another model. */
  probe(golden?: Float32Array, signal?: AbortSignal): Promise<EmbedderProbe>
  dispose?(): Promise<void>
}

/** `changed`: the server answers, but as another model would. */
export type EmbedderProbe = { ok: boolean; reason?: string; changed?: boolean; ms: number; vector?: Float32Array }

/** Scores documents against a query, in the order given; higher is better. */
export type Reranker = {
  readonly id: string
  rerank(query: string, documents: string[], options?: { signal?: AbortSignal }): Promise<number[]>
}

export type EmbedSettings = {
  provider: "none" | "local" | "openai" | "ollama"
  /** dex's own folder, in which the local model is installed. Only that one needs it. */
  dexDir?: string
  /** Where the server is; each provider has a usual place. */
  url?: string
  model?: string
  dims?: number
  apiKey?: string
}

/** Words, code and another script: enough for two models, or two revisions of one, to differ on. Never change it. */
export const GOLDEN_TEXT = "The refresh token is rotated twice: const next = await rotate(token) // 更新された"
