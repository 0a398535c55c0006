import type { Tool } from "../core/tool.ts"
import { backup, importHistory, restore } from "./backup/backup.ts"
import { blame } from "./blame/blame.ts"
import { config } from "./config/config.ts"
import type { Dex } from "./context.ts"
import { decisions } from "./decisions/decisions.ts"
import { docs } from "./docs/docs.ts"
import { doctor } from "./doctor/doctor.ts"
import { evaluate } from "./eval/eval.ts"
import { fix } from "./fix/fix.ts"
import { forget, makePrivate } from "./forget/forget.ts"
import { gc } from "./gc/gc.ts"
import { guide } from "./guide/guide.ts"
import { handover } from "./handover/handover.ts"
import { list } from "./list/list.ts"
import { mute } from "./mute/mute.ts"
import { notes } from "./note/note.ts"
import { read } from "./read/read.ts"
import { resume } from "./resume/resume.ts"
import { scan } from "./scan/scan.ts"
import { search } from "./search/search.ts"
import { show } from "./show/show.ts"
import { sources } from "./sources/sources.ts"
import { stats } from "./stats/stats.ts"
import { subscribe, subscriptions, unsubscribe } from "./subscriptions/subscriptions.ts"
import { suggest } from "./suggest/suggest.ts"
import { feedback, suggestions } from "./suggestions/suggestions.ts"
import { reindex, sync } from "./sync/sync.ts"
import { tests } from "./tests/tests.ts"
import { timeline } from "./timeline/timeline.ts"
import { trace } from "./trace/trace.ts"
import { traces } from "./traces/traces.ts"

/** Everything dex can do, in the order in which help shows it. */
export const tools: readonly Tool<Dex>[] = [
  search,
  list,
  show,
  timeline,
  scan,
  read,
  resume,
  handover,
  fix,
  blame,
  suggest,
  tests,
  decisions,
  notes,
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
