import { describe } from "vitest"
import type { HistoryReader } from "../../src/store/history/store.ts"
import { describeReading } from "../../test/store/suite.ts"
import type { HistoryFiller } from "../../test/support/memory-history.ts"
import { openViewerHistory } from "../src/store/history.ts"
import { forgetPushed } from "../src/store/push.ts"
import { headOf, newLaptop, pushOne, wireMessages } from "./support/laptop.ts"
import { hasPostgres } from "./support/postgres.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

// The same complete suite as for SQLite: a laptop's history is filled, sent to the hub and read back from PostgreSQL.

async function hubHistory(): Promise<HistoryReader & HistoryFiller> {
  const team = await newTeam()
  const tenant = await newTenant(team)
  const alice = await newMember(team, tenant, "alice")
  const laptop = newLaptop()
  const hidden = new Set<string>()
  const projects = new Set<string>()
  let token: string | undefined
  const pushChanges = async () => {
    const feed = await laptop.changes(token, 1000)
    for (const { ref } of feed.changes) {
      const row = ref && (await laptop.conversation(ref))
      if (!row) continue
      const project = row.project ?? "none"
      if (!projects.has(project)) await newProject(team, tenant, project, { own: [alice] })
      projects.add(project)
      const visibility = hidden.has(project) ? "private" : "project"
      await pushOne(team, alice, {
        project,
        head: headOf(row),
        messages: await wireMessages(laptop, row.ref),
        visibility,
      })
    }
    token = feed.token
  }
  const history = openViewerHistory(team.db, alice, { self: alice.name })
  return {
    ...history,
    writeUnit: async (write) => {
      await laptop.writeUnit(write)
      await pushChanges()
    },
    forget: async (refs) => {
      await laptop.forget(refs)
      await forgetPushed(team.db, alice, refs)
      await pushChanges()
    },
    setPrivate: async (project, isPrivate) => {
      const done = await laptop.setPrivate(project, isPrivate)
      hidden[isPrivate ? "add" : "delete"](project)
      // A conversation that is now private is pushed again with its new visibility.
      token = undefined
      await pushChanges()
      return done
    },
    saveCollection: laptop.saveCollection,
    saveProgress: laptop.saveProgress,
  }
}

describe.skipIf(!hasPostgres)("the hub", () => describeReading("on PostgreSQL", hubHistory))
