import { existsSync } from "node:fs"
import { join } from "node:path"
import { consentFor, readHub, withConsent, writeHub } from "../config/hub.ts"
import { isDexError } from "../core/error.ts"
import { openSuggestions } from "../store/suggestions/suggestions.ts"

/** Moves the user's choices for a project to the one that it was joined to: mutes, subscriptions, and consent to share it. */
export async function moveChoices(home: { dir: string }, from: string, into: string): Promise<void> {
  const file = join(home.dir, "suggest.db")
  if (existsSync(file)) {
    const suggestions = openSuggestions(file)
    try {
      suggestions.renameProject(from, into)
    } finally {
      suggestions.close()
    }
  }
  try {
    const choices = readHub(home)
    const consent = consentFor(choices, from, process.platform)
    if (!consent || consentFor(choices, into, process.platform)) return
    const without = withConsent(choices, from, undefined, process.platform)
    writeHub(home, withConsent(without, into, { ...consent, project: into }, process.platform))
  } catch (error) {
    if (!isDexError(error)) throw error // `dex hub status` reports what is wrong with the file
  }
}

/** The projects of which something is shared with a hub. Empty if the file cannot be read, because nothing is sent then. */
export function sharedProjects(home: { dir: string }): string[] {
  try {
    return readHub(home).consents.map(({ project }) => project)
  } catch {
    return []
  }
}
