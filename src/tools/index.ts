import type { Tool } from "../core/tool.ts"
import type { Dex } from "./context.ts"
import { doctor } from "./doctor.ts"
import { forget, makePrivate } from "./forget.ts"
import { get } from "./get.ts"
import { list } from "./list.ts"
import { resume } from "./resume.ts"
import { search } from "./search.ts"
import { sources } from "./sources.ts"
import { stats } from "./stats.ts"
import { reindex, sync } from "./sync.ts"

/** Everything dex can do, in the order in which help shows it. */
export const tools: readonly Tool<Dex>[] = [
  search,
  list,
  get,
  resume,
  stats,
  sync,
  sources,
  doctor,
  forget,
  makePrivate,
  reindex,
]
