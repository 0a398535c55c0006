import { join, resolve } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function dexChatRoots({ home, env }: Machine): string[] {
  return [join(env.DEX_HOME ? resolve(env.DEX_HOME) : join(home, ".dex"), "chat-sessions")]
}
