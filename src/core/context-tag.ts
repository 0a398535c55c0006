/** The tag around text that dex adds to an agent's conversation. Ingest marks that text as `injected`. */
export const CONTEXT_TAG = "dex-context"
