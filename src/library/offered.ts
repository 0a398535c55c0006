import { list } from "../tools/list/list.ts"
import { search } from "../tools/search/search.ts"
import { show } from "../tools/show/show.ts"
import { suggest } from "../tools/suggest/suggest.ts"
import { sync } from "../tools/sync/sync.ts"

/** The tools that a program can call, by the command's name. The TypeScript declarations are generated from this. */
export const OFFERED = { search, list, show, suggest, sync }
