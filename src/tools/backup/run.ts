import { accessSync, constants, existsSync, mkdirSync, statSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { hubState } from "../../config/hub.ts"
import { DexError, isDexError, messageOf } from "../../core/error.ts"
import { verifyBackup } from "../../store/history/backup.ts"
import type { Dex } from "../context.ts"
import { commandLine } from "../view.ts"
import type { BackupInput } from "./backup.ts"

export async function run(dex: Dex, input: BackupInput) {
  const started = Date.now()
  const file = resolve(dex.cwd, input.file)
  if (!dex.hasHistory())
    throw new DexError("no_history", "There is no history yet. `dex sync` reads your agents' conversations.")
  const store = await dex.storeToWrite()
  refuseToReplace(file, await store.id(), input)
  makeFolder(dirname(file))
  const { conversations, messages, blocks } = await store.backup(file, {
    "suggest.db": dex.home.suggest,
    "hub.db": hubState(dex.home),
  })
  return { file, bytes: statSync(file).size, conversations, messages, blocks, duration_ms: Date.now() - started }
}

/**
 * Creates the folder if it is missing, readable only by the user, and checks that it can be written to. The permissions of an
 * existing folder are not changed.
 */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    accessSync(folder, constants.W_OK)
  } catch (error) {
    throw new DexError(
      "not_writable",
      `A backup cannot be written to ${folder} (${messageOf(error)}). Choose another location.`,
    )
  }
}

/** A backup replaces only an older backup of the same history, and only if requested. */
function refuseToReplace(file: string, historyId: string, input: BackupInput): void {
  if (!existsSync(file)) return
  const existingId = historyIdOf(file)
  if (existingId === historyId && input.replace) return
  if (existingId === historyId)
    throw new DexError(
      "exists",
      `${file} is an older backup of this history. To replace it: ${commandLine("backup", [input.file])} --replace`,
    )
  const problem = existingId === undefined ? "is not a dex backup" : "is a backup of another history"
  throw new DexError("exists", `${file} exists and ${problem}. Choose another name, or delete that file first.`)
}

function historyIdOf(file: string): string | undefined {
  try {
    return verifyBackup(file).historyId
  } catch (error) {
    if (isDexError(error)) return undefined // The file is damaged, or is not a backup.
    throw error
  }
}
