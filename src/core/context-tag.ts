/** What dex puts into an agent's conversation stands between this tag's two ends; ingest labels it `injected`. */
export const CONTEXT_TAG = "dex-context"
