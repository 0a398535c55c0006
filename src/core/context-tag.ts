/** Encloses the text that dex adds to an agent's conversation; ingest labels it `injected`. */
export const CONTEXT_TAG = "dex-context"
