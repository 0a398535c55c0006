import { claudeCode } from "./claude-code.ts"
import { codex } from "./codex.ts"
import type { Connector } from "./connector.ts"
import { cursor } from "./cursor.ts"
import { dexChat } from "./dex-chat.ts"
import { geminiCli } from "./gemini-cli.ts"
import { opencode } from "./opencode.ts"

/** Every agent that dex reads. A new connector is one more line. */
export const connectors: readonly Connector[] = [claudeCode, codex, opencode, cursor, geminiCli, dexChat]
