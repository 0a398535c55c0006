import { join, resolve } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function notesFolder(dexHome: string): string {
  return join(dexHome, "notes")
}

export function dexNoteRoots({ home, env }: Machine): string[] {
  return [notesFolder(env.DEX_HOME ? resolve(env.DEX_HOME) : join(home, ".dex"))]
}
