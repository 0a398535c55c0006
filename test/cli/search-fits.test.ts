import { expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { synced } from "../support/synced.ts"
import { hasTmux, openScreen } from "../support/tmux.ts"
import { warmDex as dex } from "../support/warm.ts"

test.skipIf(!hasTmux)("shows as many results as fit on the screen, or as many as were requested", async () => {
  const home = await synced((at) => {
    for (let n = 0; n < 10; n++)
      claudeSession(at, {
        id: `${n}7777777-7777-4777-8777-777777777777`,
        start: "2026-11-05T10:00:00Z",
        title: `Walrus number ${n}`,
        turns: [{ user: `Why is walrus number ${n} green?` }],
      })
  })
  const screen = await openScreen(home, { columns: 100, rows: 24 })
  await screen.keys("dex search walrus", "Enter")
  const text = await screen.shows(/ conversations shown\. /)
  expect(text).toMatch(/^\$ dex search walrus\n/)
  expect(text).toMatch(/^6 of 10 conversations shown\. .*\. More: --limit 10$/m)
  expect(text.match(/^ \d {2}Walrus number/gm)).toHaveLength(6)
  await screen.keys("clear; dex search walrus --limit 8", "Enter")
  await screen.shows(/^8 of 10 conversations shown\. .* dex show 1$/m)
  await screen.tmux("resize-window", "-y", "10")
  await screen.keys("clear; dex search walrus", "Enter")
  await screen.shows(/^3 of 10 conversations shown\. .*\. More: --limit 10$/m)
})

test.skipIf(!hasTmux)("offers the local model once, and only on a terminal, if words found only a part", async () => {
  const home = await synced((at) =>
    claudeSession(at, {
      id: "17777777-7777-4777-8777-777777777777",
      start: "2026-11-05T10:00:00Z",
      turns: [{ user: "Why is the walrus green?" }],
    }),
  )
  const offer = /dex config set embed\.provider local/
  expect((await dex(home, ["search", "walrus", "purple"])).stderr).not.toMatch(offer)
  const screen = await openScreen(home, { columns: 100, rows: 24 })
  await screen.keys("dex search walrus; echo the end", "Enter")
  expect(await screen.shows(/^the end$/m)).not.toMatch(offer)
  await screen.keys("clear; dex search walrus purple; echo the second end", "Enter")
  expect((await screen.shows(/^the second end$/m)).replace(/\s+/g, " ")).toMatch(offer)
  await screen.keys("clear; dex search walrus purple; echo the last end", "Enter")
  expect((await screen.shows(/^the last end$/m)).replace(/\s+/g, " ")).not.toMatch(offer)
})
