import { join } from "node:path"
import { expect, test } from "vitest"
import { openStore } from "../../../src/store/history/sqlite-history.ts"
import { tryLock } from "../../../src/store/sqlite/lock.ts"
import { claudeSession } from "../../support/home.ts"
import { tempDir } from "../../support/temp.ts"
import { hasTmux, openScreen } from "../../support/tmux.ts"
import { syncHome } from "../../support/warm.ts"
import { daysAgo, pickerHome } from "./home.ts"

test.skipIf(!hasTmux)(
  "while another dex syncs, the picker shows its progress once, and finds what was read",
  async () => {
    const home = tempDir()
    pickerHome(home)
    await syncHome(home)
    const store = openStore(join(home, ".dex", "history.db"))
    const progress = (done: number) => store.saveProgress({ done, total: 9, at: Date.now() })
    await progress(3)
    const other = tryLock(join(home, ".dex", "sync.lock"))!
    const screen = await openScreen(home, { columns: 80, rows: 24 })
    await screen.keys("dex", "Enter")
    await screen.shows("⟳ 3 of 9")
    await screen.type("token")
    await screen.shows("Refresh token race")
    await progress(6)
    expect(await screen.shows("⟳ 6 of 9")).not.toContain("read so far")
    const turns = [{ user: "Why is the token of the walrus green?", assistant: "It is painted." }]
    claudeSession(home, { id: "77777777-7777-4777-8777-777777777777", start: daysAgo(1), title: "Green walrus", turns })
    store.close()
    other.release()
    expect(await screen.shows("Green walrus")).not.toContain("read so far")
    await expect.poll(() => screen.text()).not.toContain("⟳")
  },
)
