import { ask } from "../answers/ask.ts"
import { chat } from "../answers/chat.ts"
import { digest } from "../answers/digest.ts"
import { map } from "../answers/map.ts"
import { rules } from "../answers/rules.ts"
import type { Tool } from "../core/tool.ts"
import { tools } from "../tools/index.ts"
import { install, uninstall } from "./install.ts"
import { watch } from "./watch.ts"

/** Everything that is declared, in the order in which help shows it: the tools, and what only a terminal has. */
export const commands = [...tools, ask, chat, map, digest, rules, install, uninstall, watch] as readonly Tool<never>[]
