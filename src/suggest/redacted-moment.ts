import type { Moment } from "../core/suggestion.ts"
import { mayHoldSecret } from "../redact/may-hold-secret.ts"

const NAMES = ["file", "branch", "symbol"] as const

/**
 * The moment with its names as facts know them: a file, a branch or a symbol can hold a secret too. The rules are loaded
 * only where a name could.
 */
export async function withRedactedNames(moment: Moment): Promise<Moment> {
  const names = [...NAMES.map((field) => moment[field] ?? ""), ...(moment.recent_files ?? [])]
  if (!names.some(mayHoldSecret)) return moment
  const { redactText } = await import("../redact/redact.ts")
  const redactName = (name: string) => (mayHoldSecret(name) ? redactText(name) : name)
  const clean = { ...moment }
  for (const field of NAMES) if (moment[field] !== undefined) clean[field] = redactName(moment[field])
  if (moment.recent_files) clean.recent_files = moment.recent_files.map(redactName)
  return clean
}
