import type { Tool } from "../core/tool.ts"
import { backup, importHistory, restore } from "./backup.ts"
import { config } from "./config.ts"
import type { Dex } from "./context.ts"
import { decisions } from "./decisions.ts"
import { docs } from "./docs.ts"
import { doctor } from "./doctor.ts"
import { evaluate } from "./eval.ts"
import { fix } from "./fix.ts"
import { forget, makePrivate } from "./forget.ts"
import { gc } from "./gc.ts"
import { get } from "./get.ts"
import { guide } from "./guide.ts"
import { handover } from "./handover.ts"
import { list } from "./list.ts"
import { mute } from "./mute.ts"
import { read } from "./read.ts"
import { resume } from "./resume.ts"
import { scan } from "./scan.ts"
import { search } from "./search.ts"
import { sources } from "./sources.ts"
import { stats } from "./stats.ts"
import { subscribe, subscriptions, unsubscribe } from "./subscriptions.ts"
import { suggest } from "./suggest.ts"
import { feedback, suggestions } from "./suggestions.ts"
import { reindex, sync } from "./sync.ts"
import { tests } from "./tests.ts"
import { timeline } from "./timeline.ts"
import { trace } from "./trace.ts"
import { traces } from "./traces.ts"

/** Everything dex can do, in the order in which help shows it. */
export const tools: readonly Tool<Dex>[] = [
  search,
  list,
  get,
  timeline,
  scan,
  read,
  resume,
  handover,
  fix,
  suggest,
  tests,
  decisions,
  suggestions,
  feedback,
  subscribe,
  subscriptions,
  unsubscribe,
  docs,
  traces,
  trace,
  stats,
  guide,
  sync,
  sources,
  doctor,
  forget,
  makePrivate,
  mute,
  reindex,
  gc,
  backup,
  restore,
  importHistory,
  evaluate,
  config,
]
