import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { expect, test } from "vitest"
import { identifyProjects } from "../../src/ingest/identify-projects.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { makeRepository } from "../support/repository.ts"
import { tempDir } from "../support/temp.ts"

const COMMITS = Number(process.env.DEX_COMMITS ?? 20_000)

/** Makes a repository with this many commits, one after another. */
async function longHistory(folder: string): Promise<void> {
  makeRepository(folder)
  const git = spawn("git", ["fast-import", "--quiet"], { cwd: folder, stdio: ["pipe", "inherit", "inherit"] })
  const ended = once(git, "exit")
  for (let first = 0; first < COMMITS; first += 10_000) {
    const commits = Array.from({ length: Math.min(10_000, COMMITS - first) }, (_, i) => {
      const text = `step ${first + i}`
      return `commit refs/heads/main\ncommitter t <t@example.com> ${1_500_000_000 + first + i} +0000\ndata ${text.length}\n${text}\n`
    })
    if (!git.stdin.write(commits.join(""))) await once(git.stdin, "drain")
  }
  git.stdin.end()
  expect(await ended).toEqual([0, null])
}

test("two clones of a repository with very many commits are one project, and git is asked once", async () => {
  const root = tempDir()
  const [first, second] = [join(root, "first"), join(root, "second")]
  await longHistory(first)
  makeRepository(first).git("clone", "-q", "--shared", "--no-checkout", first, second)
  for (const folder of [first, second])
    makeRepository(folder).git("config", "remote.origin.url", "https://github.com/acme/long.git")
  const home = { dir: root, history: join(root, "history.db"), lock: join(root, "lock") }
  const store = openStore(home.history)
  for (const folder of [first, second])
    await store.writeUnit(
      unit(folder, [conversation(folder, [textMessage(folder, "hi")], { cwds: [folder], project: folder })]),
    )
  const timed = async () => {
    const started = performance.now()
    const joined = await identifyProjects({ store, home })
    return { joined, ms: Math.round(performance.now() - started) }
  }
  const found = await timed()
  expect(found.joined).toMatchObject([{ project: first, folder: second }])
  const again = await timed()
  expect(again.joined).toEqual([])
  expect(again.ms).toBeLessThan(found.ms / 10 + 100)
  console.log(`${COMMITS} commits: identified in ${found.ms} ms, looked at again in ${again.ms} ms`)
  store.close()
})
