import { mayContainSecret } from "./may-contain-secret.ts"
import { redactText } from "./redact.ts"

/**
 * Redacts the name of a file, a branch or a symbol, so that it can be stored and shown. The same name always yields the same
 * text, so a lookup redacts the requested name first.
 */
export function redactName(name: string): string {
  return mayContainSecret(name) ? redactText(name) : name
}
