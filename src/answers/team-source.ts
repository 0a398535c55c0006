import { formatRef } from "../core/ref.ts"
import type { HubClient } from "../hub-client/client.ts"
import type { PassageSource } from "./passage-source.ts"
import type { EditedFiles, SentPassage, SentPassages } from "./team-questions.ts"

/** What a team shares, found and read on its hub. */
export function teamHistory(hub: Pick<HubClient, "ask">): PassageSource {
  return {
    find: (wanted) => hub.ask<SentPassages>("passages", wanted),
    read: (ref) => hub.ask<SentPassage>("passage", { id: ref }),
    async editedBy(conversations) {
      const ids = conversations.map((ref) => formatRef(ref))
      const { edited } = await hub.ask<EditedFiles>("edited_files", { ids })
      const files = new Map(edited.map((one) => [one.id, one.files]))
      return ids.map((id) => files.get(id) ?? [])
    },
  }
}
