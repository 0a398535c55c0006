import { existsSync, mkdirSync } from "node:fs"
import { resolve } from "node:path"
import { hubState } from "../../config/hub.ts"
import { syncToDisk } from "../../core/copy-file.ts"
import { DexError } from "../../core/error.ts"
import { extractDatabases, mergeLog, verifyBackup } from "../../store/history/backup.ts"
import { copyForeign } from "../../store/history/foreign-file.ts"
import { cleanUpRestore, preparedHistoryPath, replaceHistory } from "../../store/history/kept-histories.ts"
import { HUB_MIGRATIONS } from "../../store/hub/migrations.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import { SUGGESTION_MIGRATIONS } from "../../store/suggestions/migrations.ts"
import type { Dex } from "../context.ts"
import type { RestoreInput } from "./backup.ts"

export async function run(dex: Dex, input: RestoreInput) {
  const file = resolve(dex.cwd, input.file)
  const { history } = dex.home
  mkdirSync(dex.home.dir, { recursive: true, mode: 0o700 })
  const lock = tryLock(dex.home.lock)
  if (!lock) throw new DexError("busy", "Another dex process is syncing right now. Try again when it is done.")
  try {
    cleanUpRestore(history)
    if (existsSync(history) && !input.replace)
      throw new DexError(
        "history_exists",
        `There is already a history here. To merge the backup into it: dex import ${input.file}. To replace it with the backup: dex backup --restore ${input.file} --replace`,
      )
    const preparedFile = preparedHistoryPath(history)
    copyForeign(file, preparedFile)
    const { conversations, messages } = verifyBackup(preparedFile, file)
    const leftOut = extractDatabases(preparedFile, {
      "suggest.db": { target: dex.home.suggest, migrations: SUGGESTION_MIGRATIONS },
      "hub.db": { target: hubState(dex.home), migrations: HUB_MIGRATIONS },
    })
    if (mergeLog(preparedFile) !== "done") throw new DexError("corrupt", `${file} is damaged. Use another copy of it.`)
    syncToDisk(preparedFile)
    if (existsSync(history) && mergeLog(history) === "in use")
      throw new DexError(
        "in_use",
        "Another program is using the history: an agent with dex as its MCP server, or `dex watch`. Close it and try again.",
      )
    const kept = replaceHistory(history, dex.now())
    return {
      file,
      conversations,
      messages,
      kept,
      left_out: leftOut.length > 0 ? leftOut : undefined,
    }
  } finally {
    cleanUpRestore(history)
    lock.release()
  }
}
