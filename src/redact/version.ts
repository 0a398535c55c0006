/**
 * The version of the rules. Increase it if any text may be redacted differently than before; stored texts are then redacted
 * again.
 */
export const REDACTION_VERSION = 3
