import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { hubState } from "../../config/hub.ts"
import { DexError } from "../../core/error.ts"
import { isUnused, takeFiles, verifyBackup } from "../../store/history/backup.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import type { Dex } from "../context.ts"

export async function run(dex: Dex, input: { file: string; replace?: boolean }) {
  const file = resolve(dex.cwd, input.file)
  const { conversations, messages } = verifyBackup(file)
  const { history } = dex.home
  mkdirSync(dex.home.dir, { recursive: true, mode: 0o700 })
  const lock = tryLock(dex.home.lock)
  if (!lock) throw new DexError("busy", "Another dex is syncing right now. Try again when it is done.")
  try {
    if (existsSync(history) && !input.replace)
      throw new DexError(
        "history_exists",
        `There is already a history here. To merge the backup into it: dex import ${input.file}. To replace it with the backup: dex restore ${input.file} --replace`,
      )
    if (existsSync(history) && !isUnused(history))
      throw new DexError(
        "in_use",
        "Another program uses the history: an agent with dex as its MCP server, or `dex watch`. Close it and try again.",
      )
    const arriving = `${history}.restored`
    copyFileSync(file, arriving)
    takeFiles(arriving, { "suggest.db": dex.home.suggest, "hub.db": hubState(dex.home) })
    const kept = existsSync(history) ? moveAside(history) : undefined
    renameSync(arriving, history)
    return { file, conversations, messages, ...(kept !== undefined && { kept }) }
  } finally {
    lock.release()
  }
}

/** The index and what was learned follow another history by themselves: they notice that its id is not theirs. */
function moveAside(history: string): string {
  const day = new Date().toISOString().slice(0, 10)
  let kept = `${dirname(history)}/history-until-${day}.db`
  for (let n = 2; existsSync(kept); n++) kept = `${dirname(history)}/history-until-${day}-${n}.db`
  for (const suffix of ["-wal", "-shm"]) {
    if (existsSync(history + suffix)) renameSync(history + suffix, kept + suffix)
    rmSync(history + suffix, { force: true })
  }
  renameSync(history, kept)
  return kept
}
