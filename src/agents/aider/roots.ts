import { isAbsolute, join } from "node:path"
import type { Machine } from "../kit/connector.ts"

const NAME = ".aider.chat.history.md"

/**
 * The files themselves: Aider keeps its history in the project. Nobody's folders are searched for them: dex looks into those
 * that it knows conversations of, and into those that the user named.
 */
export function aiderRoots({ home, env, projects = [] }: Machine): string[] {
  const named = env.AIDER_CHAT_HISTORY_FILE
  const known = [home, ...projects].filter((folder) => isAbsolute(folder)).map((folder) => join(folder, NAME))
  return [...new Set([...(named && isAbsolute(named) ? [named] : []), ...known])]
}
