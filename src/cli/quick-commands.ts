import { isSharing } from "../config/hub.ts"
import type { Dex } from "../tools/context.ts"
import { list } from "../tools/list/list.ts"
import { search } from "../tools/search/search.ts"
import { read, scan, timeline } from "../tools/show/forms.ts"
import { show } from "../tools/show/show.ts"
import { sync } from "../tools/sync/sync.ts"
import { type Command, command } from "./command.ts"
import { runWords } from "./run-command.ts"

/** If projects are shared, starts a process that sends new conversations to the hub and deletes forgotten ones there. */
export const pushInBackground = async (dex: Dex) => {
  if (isSharing(dex.home)) (await import("../tools/hub/background-push.ts")).startBackgroundPush(dex)
}

/**
 * The commands that are typed most, each with all its forms. They start without loading the declarations of the other
 * commands, which are in `commands.ts`.
 */
export const quickCommands: readonly Command[] = [
  command(search, {
    view: async () => (await import("./print/search.ts")).printSearch,
    tip: async ({ matched, mode }, dex) =>
      matched === "some" && mode === "lexical"
        ? (await import("../tools/embedder.ts")).offerLocalModel(dex)
        : undefined,
  }),
  command(list, { view: async () => (await import("./print/list.ts")).printList, needsAllHistory: true }),
  command(show, {
    view: async () => (await import("./print/show.ts")).printShow,
    reader: async () => (await import("./print/reader.ts")).readShow,
  }),
  command(scan, { view: async () => (await import("./print/show.ts")).printScan }),
  command(read, { view: async () => (await import("./print/show.ts")).printRead }),
  command(timeline, { view: async () => (await import("./print/show.ts")).printTimeline }),
  command(sync, {
    view: async () => (await import("./print/keeping.ts")).printSync,
    onInterrupt: { keptNote: "Everything read so far is kept. " },
    streams: true,
    background: pushInBackground,
  }),
]

/** Runs `dex sync` and the words after it. Programs sync often, and mostly nothing is new: then loading is most of the work. */
export const runSync = (words: string[]): Promise<number> =>
  runWords(quickCommands.find(({ tool }) => tool === sync)!, words, quickCommands)
