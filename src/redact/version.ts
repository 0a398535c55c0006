/** Raised whenever a text may be redacted differently than before: what is stored is then redacted again. */
export const REDACTION_VERSION = 3
