import { mayHoldSecret } from "./may-hold-secret.ts"
import { redactText } from "./redact.ts"

/**
 * The name of a file, a branch or a symbol as it may be kept and shown. The same name gives the same text, so what is
 * known of it is found again by redacting the name that is asked for.
 */
export function redactName(name: string): string {
  return mayHoldSecret(name) ? redactText(name) : name
}
