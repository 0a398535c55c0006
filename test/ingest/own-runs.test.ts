import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { synced } from "../support/synced.ts"
import { warmDex as dex } from "../support/warm.ts"

test("an agent's run that dex started in a chat's folder is not part of the user's history", async () => {
  const home = await synced((at) => {
    mkdirSync(join(at, ".dex", "chat-sessions", "2026-11-12-abc"), { recursive: true })
    const turns = [{ user: "Answer from the zebrafinch passages" }, { assistant: "The zebrafinch answer." }]
    for (const [n, folder] of ["", "/work"].entries())
      claudeSession(at, {
        id: `7777777${n}-7777-4777-8777-777777777777`,
        cwd: join(at, ".dex", "chat-sessions", `2026-11-12-abc${folder}`),
        start: "2026-11-12T10:00:00Z",
        turns,
      })
    // A folder whose name only begins like it is somebody's project.
    claudeSession(at, {
      id: "88888888-8888-4888-8888-888888888888",
      cwd: join(at, ".dex", "chat-sessions-theme"),
      start: "2026-11-12T10:00:00Z",
      turns: [{ user: "Paint the quagga" }],
    })
  })
  const found = async (word: string) => JSON.parse((await dex(home, ["search", word, "--json"])).stdout).total
  expect(await found("zebrafinch")).toBe(0)
  expect(await found("quagga")).toBe(1)
  const { conversations } = JSON.parse((await dex(home, ["list", "--all", "--json"])).stdout)
  expect(conversations.filter(({ id }: { id: string }) => id.includes("7777777"))).toHaveLength(0)
  expect(conversations).toHaveLength(4)
})
