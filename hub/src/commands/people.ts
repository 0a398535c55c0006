import { appendFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ownerFrom, SettingsProblem, settingsFrom } from "../settings.ts"
import { openDatabase } from "../store/connection.ts"
import { memberData } from "../store/member-data.ts"
import { asOwner } from "../store/owner.ts"
import { memberNamed, tenantNamed } from "../store/people.ts"
import { type Commands, say } from "./commands.ts"

/** The operator's commands for tenants, members and their rights. */
export const peopleCommands: Commands = {
  "member export": async ([name = ""], { tenant, to }) => {
    if (!to) throw new SettingsProblem("Which folder? Give --to FOLDER")
    const counts = await exportMember(name, tenant, to)
    say(
      `Wrote ${Object.entries(counts)
        .map(([file, lines]) => `${file} (${lines})`)
        .join(", ")} to ${to}.`,
    )
  },
}

/**
 * Writes all data of one person as JSON lines into an empty folder that only its owner can read. Returns the line counts by file.
 */
async function exportMember(name: string, slug = "", folder: string): Promise<Record<string, number>> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (readdirSync(folder).length > 0) throw new SettingsProblem(`${folder} is not empty. Choose another folder.`)
  const db = openDatabase({ ...settingsFrom(process.env), connections: 1 })
  try {
    return await asOwner(ownerFrom(process.env), async (query) => {
      const tenant = await tenantNamed(query, slug)
      const { id: member } = await memberNamed(query, tenant, name)
      const counts: Record<string, number> = {}
      for (const { name: file, lines } of await memberData(db, query, { tenant, member })) {
        const path = join(folder, file)
        writeFileSync(path, "", { mode: 0o600 })
        counts[file] = 0
        for await (const line of lines) {
          appendFileSync(path, `${JSON.stringify(line)}\n`)
          counts[file]++
        }
      }
      return counts
    })
  } finally {
    await db.close()
  }
}
