import { mayHoldSecret } from "./may-hold-secret.ts"
import { redactText } from "./redact.ts"

/**
 * The name of a file, a branch or a symbol in the form in which it may be stored and shown. The same name always gives the same
 * text, so a lookup redacts the requested name first.
 */
export function redactName(name: string): string {
  return mayHoldSecret(name) ? redactText(name) : name
}
