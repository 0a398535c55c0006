import { list } from "../tools/list/list.ts"
import { search } from "../tools/search/search.ts"
import { show } from "../tools/show/show.ts"
import { suggest } from "../tools/suggest/suggest.ts"
import { sync } from "../tools/sync/sync.ts"

/** The tools that a program can call, by the name of their command. The TypeScript declarations are generated from this. */
export const LIBRARY_TOOLS = { search, list, show, suggest, sync }
