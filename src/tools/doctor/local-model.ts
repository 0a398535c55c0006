import { loadSettings } from "../../config/load.ts"
import { grouped } from "../../core/format.ts"
import { helperState } from "../../embed/ask-helper.ts"
import { localPackage } from "../../embed/local-package.ts"
import type { Dex } from "../context.ts"
import type { Check } from "./run.ts"

const ANSWER_TIMEOUT_MS = 2_000

/** Checks whether the local model is installed, which process runs it, and how many messages it has embedded. */
export async function checkLocalModel(dex: Dex): Promise<Check[]> {
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.place })
  if (settings["embed.provider"] !== "local") return []
  const name = "meaning"
  const local = localPackage(dex.home.dir)
  if (!local)
    return [
      {
        name,
        status: "problem",
        message: "The local model is selected but not installed, so search uses words only.",
        mend: "dex config set embed.provider local",
      },
    ]
  const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS)
  // An error is ignored, because a helper that is busy may not answer in time.
  const helper = await helperState({ dexDir: dex.home.dir, local, role: "query" }, signal).catch(() => undefined)
  const processText = helper
    ? `it is loaded in process ${helper.pid} (${Math.round(helper.bytes / 1e6)} MB), which ends ten minutes after the last search`
    : "it is not loaded now; the next search loads it"
  const { done, all } = await embeddedCounts(dex, local.id)
  const progress = `${grouped(done)} of ${grouped(all)} messages are embedded`
  const isDone = done >= all
  return [
    {
      name,
      status: isDone ? "ok" : "note",
      message: `local model ${local.version} (${local.id}): ${progress}; ${processText}`,
      mend: isDone ? undefined : "dex sync",
    },
  ]
}

async function embeddedCounts(dex: Dex, id: string): Promise<{ done: number; all: number }> {
  const vectors = await (await dex.index())?.vectors()
  const space = vectors?.stats().find(({ embedder }) => embedder === id)
  return { done: space?.done ?? 0, all: vectors?.documents() ?? 0 }
}
