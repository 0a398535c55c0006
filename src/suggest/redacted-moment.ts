import type { Moment } from "../core/suggestion.ts"
import { mayContainSecret } from "../redact/may-contain-secret.ts"

const NAMES = ["file", "branch", "symbol"] as const

/**
 * Redacts the names in a moment in the same way as in the stored facts, because the name of a file, branch or symbol can contain
 * a secret too. The rules are loaded only if a name may contain one.
 */
export async function withRedactedNames(moment: Moment): Promise<Moment> {
  const names = [...NAMES.map((field) => moment[field] ?? ""), ...(moment.recent_files ?? [])]
  if (!names.some(mayContainSecret)) return moment
  const { redactText } = await import("../redact/redact.ts")
  const redactName = (name: string) => (mayContainSecret(name) ? redactText(name) : name)
  const clean = { ...moment }
  for (const field of NAMES) if (moment[field] !== undefined) clean[field] = redactName(moment[field])
  if (moment.recent_files) clean.recent_files = moment.recent_files.map(redactName)
  return clean
}
