import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { readText } from "../core/read-file.ts"

// Keeps the answer that the person gave when `dex ask` offered to let an agent write its answers: a small file in dex's folder. It is no
// setting: to be asked again, delete the file.

const FILE = "agent-offered"

/** The answer, or undefined if the person has not been asked yet. */
export function agentOfferAnswer(folder: string): string | undefined {
  try {
    return readText(join(folder, FILE), 16)
  } catch {
    return undefined
  }
}

export function saveAgentOfferAnswer(folder: string, answer: string): void {
  writeFileSync(join(folder, FILE), answer, { mode: 0o600 })
}
