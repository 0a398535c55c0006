import { expect, test } from "vitest"
import { widthOf } from "../../src/render/terminal.ts"
import { onTerminal } from "../integrations/terminal.ts"
import { claudeSession } from "../support/home.ts"
import { syncedOnce } from "../support/synced.ts"
import { warmDex as dex } from "../support/warm.ts"

const HOME = syncedOnce((at) =>
  claudeSession(at, {
    id: "77777777-7777-4777-8777-777777777777",
    start: "2026-11-01T00:00:00Z",
    title: "A title that says what was done, ✅ in more words than one line of a narrow terminal can hold",
    turns: [
      { user: "Why do the words break in the middle ✅ at the edge of a terminal that is narrow, and not at a space?" },
      { assistant: "Because nothing wraps them before they are written, so that the terminal has to do it by itself." },
    ],
  }),
)

test.each([
  [60, "show 77777777#1 --timeline --no-pager"],
  [60, "show 77777777 --lines --no-pager"],
  [60, "handover 77777777"],
  [40, "doctor stats"],
  [60, "guide"],
])("at %i columns dex %s breaks no word, and says the same as in a pipe", async (columns, command) => {
  const args = command.split(" ")
  const run = await onTerminal(HOME, args, [], columns)
  if (run === undefined) return
  const piped = await dex(HOME, args)
  const words = (text: string) => text.split(/\s+/).filter((word) => word !== "")
  expect(words(run.screen)).toEqual(words(`${piped.stdout}\n${piped.stderr}`))
  for (const line of run.screen.split("\r\n")) expect([line, widthOf(line) <= columns]).toEqual([line, true])
  expect(run.screen.split("\r\n").length).toBeGreaterThan(piped.stdout.split("\n").length)
})
