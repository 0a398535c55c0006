import { ask } from "../answers/ask.ts"
import { why } from "../answers/why.ts"
import { decisions } from "../tools/decisions/decisions.ts"
import { list } from "../tools/list/list.ts"
import { search } from "../tools/search/search.ts"
import { show } from "../tools/show/show.ts"
import { stats } from "../tools/stats/stats.ts"
import { suggest } from "../tools/suggest/suggest.ts"
import { sync } from "../tools/sync/sync.ts"

/** The tools that a program can call, by the name of their command. The TypeScript declarations are generated from this. */
export const LIBRARY_TOOLS = { search, list, show, suggest, sync, ask, why, decisions, stats }
