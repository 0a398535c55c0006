import { homedir } from "node:os"
import { join, resolve } from "node:path"
import { DexError } from "../core/error.ts"
import { INDEX_FILE, KNOWLEDGE_FILE, SPENDING_FILE } from "../core/formats.ts"

/** The paths of dex's files. `DEX_HOME` changes their folder. */
export type Home = {
  dir: string
  history: string
  index: string
  knowledge: string
  spending: string
  suggest: string
  lock: string
  traces: string
  /** Texts that hooks produced too late. `integrations/launcher.ts` prints them at the next event. */
  lateTexts: string
  /** The line that `dex usage --line` shows. */
  usageLine: string
  /** The limits of plans, as agents last reported them. */
  limits: string
  config: string
}

export function dexHome(env: Record<string, string | undefined>): Home {
  const user = env.DEX_HOME ? undefined : (env.HOME ?? env.USERPROFILE ?? safeHomedir())
  if (!env.DEX_HOME && !user) {
    throw new DexError(
      "no_home",
      "No home directory is known, because HOME is not set. Set DEX_HOME to a folder for dex's data.",
    )
  }
  const dir = env.DEX_HOME ? resolve(env.DEX_HOME) : join(user!, ".dex")
  return {
    dir,
    history: join(dir, "history.db"),
    index: join(dir, INDEX_FILE),
    knowledge: join(dir, KNOWLEDGE_FILE),
    spending: join(dir, SPENDING_FILE),
    suggest: join(dir, "suggest.db"),
    lock: join(dir, "sync.lock"),
    traces: join(dir, "traces"),
    lateTexts: join(dir, "late"),
    usageLine: join(dir, "usage-line.json"),
    limits: join(dir, "limits.json"),
    config: join(dir, "config.json"),
  }
}

function safeHomedir(): string | undefined {
  try {
    return homedir() || undefined
  } catch {
    return undefined // the user has no passwd entry; the caller says which variable to set
  }
}
