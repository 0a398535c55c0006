import { existsSync, rmSync } from "node:fs"
import { homedir } from "node:os"
import type { Machine } from "../agents/kit/connector.ts"
import type { OutsideAgents } from "../agents/outside.ts"
import { dexHome } from "../config/home.ts"
import { loadSettings } from "../config/load.ts"
import { watchPlaces } from "../config/places.ts"
import { expandTilde } from "../config/secret.ts"
import { splitNames } from "../config/settings.ts"
import { createProjectFinder, gitStampOf } from "../git/project.ts"
import type { SyncProgress } from "../ingest/sync-types.ts"
import type { HistoryWriter } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import type { readTopicFacts } from "../store/knowledge/topic-facts.ts"
import type { SpendingFile } from "../store/spending/spending-file.ts"
import { olderKnowledge } from "../store/sqlite/older-files.ts"
import type { Suggestions } from "../store/suggestions/suggestions.ts"
import type { Dex } from "../tools/context.ts"
import { clearListings, readListing } from "./listing.ts"

const NO_OUTSIDE_AGENTS: OutsideAgents = { agents: [], unloaded: [] }

/**
 * How long a background sync may embed, in seconds: enough for half a million messages. A sync with nothing left to do ends
 * sooner.
 */
const EMBED_SECONDS = 6 * 3600
/** The size of SQLite's page cache in a server, in kilobytes: half of dex's default. */
const SMALL_CACHE_KB = 8_000

async function loadOutside(names: string[], dexDir: string): Promise<OutsideAgents> {
  return names.length === 0 ? NO_OUTSIDE_AGENTS : (await import("../agents/outside.ts")).loadOutside(names, dexDir)
}

export type DexOptions = {
  env: Record<string, string | undefined>
  cwd: string
  version: string
  onProgress?: (progress: SyncProgress) => void
  onWait?: (text: string) => void
  signal?: AbortSignal
  /** True in a server: then even a small amount of memory-intensive work is done in another process. */
  staysSmall?: boolean
  /** True if a person, or an agent in a shell, reads the answer and can therefore run the forms of `dex show`. */
  hasForms?: boolean
}

/** Wires the parts together. Nothing is opened until it is needed; `close` closes what was opened. */
export function createDex(options: DexOptions): Dex & { close(): void } {
  const home = dexHome(options.env)
  const machine: Machine = {
    home: options.env.HOME ?? options.env.USERPROFILE ?? homedir(),
    env: options.env,
    platform: process.platform,
    get otherHomes() {
      const { settings } = loadSettings({ file: home.config, env: options.env })
      return splitNames(settings["sources.extra_roots"]).map((path) => expandTilde(path, machine.home))
    },
  }
  let store: Promise<HistoryWriter> | undefined
  let index: Promise<SearchIndex> | undefined
  let knowledge: Promise<Knowledge> | undefined
  let topicFacts: ReturnType<typeof readTopicFacts>
  let spending: Promise<SpendingFile> | undefined
  const openIndex = () =>
    (index ??= import("../store/index/search-index.ts").then((module) => module.openIndex(home.index)))
  let openedIndex: SearchIndex | undefined
  const currentIndex = async () => {
    if (openedIndex && !existsSync(`${home.index}.damaged`)) return openedIndex
    openedIndex?.close()
    openedIndex = undefined
    const result = (await import("../store/index/search-index.ts")).readIndex(home.index)
    if (typeof result !== "string") openedIndex = result
    return result
  }
  const openStore = () =>
    (store ??= import("../store/history/sqlite-history.ts").then((module) =>
      module.openStore(home.history, options.staysSmall ? { cacheKb: SMALL_CACHE_KB } : {}),
    ))
  let suggestions: Promise<Suggestions> | undefined
  const openSuggestions = () =>
    (suggestions ??= Promise.all([import("../store/suggestions/suggestions.ts"), import("../redact/redact.ts")]).then(
      ([store, { redactText }]) => store.openSuggestions(home.suggest, { redact: redactText }),
    ))
  const findPlace = createProjectFinder(machine.platform)
  const places = watchPlaces(home, machine.platform)
  const projectOf = (folder: string) => {
    const place = findPlace(folder)
    return places().projectOf(place) ?? place
  }
  const outsideNames = () => splitNames(loadSettings({ file: home.config, env: {} }).settings.agents)
  let outside: Promise<OutsideAgents> | undefined
  return {
    home,
    machine,
    version: options.version,
    cwd: options.cwd,
    get place() {
      return findPlace(options.cwd)
    },
    get project() {
      return projectOf(options.cwd)
    },
    projectOf,
    foldersOf: (project) => places().foldersOf(project),
    locate: async () => {
      const place = findPlace(options.cwd)
      if (!existsSync(home.history) || !places().isUnidentified(place, gitStampOf(place))) return
      const { identifyFolder, identifyProjects } = await import("../ingest/identify-projects.ts")
      const deps = { store: await openStore(), home }
      // The same comparison may join others, too: gone folders whose work is in this repository.
      if ((await identifyFolder(deps, place)) !== undefined) await identifyProjects(deps)
    },
    now: () => Date.now(),
    hasHistory: () => existsSync(home.history),
    store: openStore,
    storeToWrite: openStore,
    hasKnowledge: () => existsSync(home.knowledge) || existsSync(olderKnowledge(home.knowledge)),
    knowledge: () =>
      (knowledge ??= import("../store/knowledge/knowledge.ts").then((module) => module.openKnowledge(home.knowledge))),
    topicFacts: async () => {
      if (!existsSync(home.knowledge)) return undefined
      topicFacts ??= (await import("../store/knowledge/topic-facts.ts")).readTopicFacts(home.knowledge)
      return topicFacts
    },
    spending: () =>
      (spending ??= import("../store/spending/spending-file.ts").then((module) => module.openSpending(home.spending))),
    index: async () => {
      const current = await currentIndex()
      return typeof current === "string" ? undefined : current
    },
    indexIsDamaged: async () => (await currentIndex()) === "damaged",
    indexToWrite: async () => (existsSync(home.index) ? openIndex() : undefined),
    hasSuggestions: () => existsSync(home.suggest),
    suggestions: openSuggestions,
    takeDamaged: async () => (store ? (await store).takeDamaged() : []),
    staysSmall: options.staysSmall,
    hasForms: options.hasForms,
    summarize: async (...given) => (await import("../answers/summary.ts")).summarizeConversation(...given),
    syncInBackground: async () =>
      (await import("./background.ts")).startBackgroundSync(home.dir, options.env, [
        "--max-seconds",
        String(EMBED_SECONDS),
      ]),
    learnInSubprocess: async () => (await import("./background.ts")).runInSubprocess("learn", options),
    syncDeps: async () => {
      const { finishForgetting } = await import("../tools/forget/finish-forgetting.ts")
      await finishForgetting(home, 0)
      const { loadConnectors } = await import("../agents/connectors.ts")
      const outsideAgents = outsideNames()
      const store = await openStore()
      // A plain object without getters, because it is also passed to threads.
      const machineWithProjects = { ...machine, projects: (await store.projects()).map(({ path }) => path) }
      const connectors = await loadConnectors(outsideAgents, home.dir, {
        machine: machineWithProjects,
        stored: await store.storedSources(),
      })
      return {
        store,
        index: await openIndex(),
        outsideAgents,
        ...connectors,
        machine: machineWithProjects,
        home,
      }
    },
    allConnectors: async () => {
      const { loadConnectors } = await import("../agents/connectors.ts")
      return (await loadConnectors(outsideNames(), home.dir)).connectors
    },
    outsideAgents: () => (outside ??= loadOutside(outsideNames(), home.dir)),
    onProgress: options.onProgress,
    onWait: options.onWait,
    signal: options.signal,
    lastListing: () => readListing(home.dir),
    clearCopies: async (refs, projects) => {
      clearListings(home.dir)
      const { clearScratch } = await import("../store/sqlite/scratch.ts")
      clearScratch(home)
      rmSync(home.lateTexts, { recursive: true, force: true })
      rmSync(home.usageLine, { force: true })
      const { forgetMapAnswers } = await import("../answers/map/cache.ts")
      forgetMapAnswers(home.dir, refs)
      const { damageFile, dropDamage } = await import("../store/history/rot/damage-list.ts")
      dropDamage(damageFile(home.dir), refs)
      if (existsSync(home.suggest)) (await openSuggestions()).forget(refs, projects)
    },
    redactCopies: async () => {
      const { redactText } = await import("../redact/redact.ts")
      const { dropMapAnswers } = await import("../answers/map/cache.ts")
      const { dropTraces } = await import("../trace/forget.ts")
      const hasSecret = (text: string) => redactText(text) !== text
      clearListings(home.dir) // Listings contain the words of a search, which may include a secret.
      dropMapAnswers(home.dir, hasSecret)
      rmSync(home.lateTexts, { recursive: true, force: true })
      dropTraces(home.traces, hasSecret)
      if (existsSync(home.suggest)) (await openSuggestions()).redactAgain()
    },
    close: () => {
      // A database that could not be opened was already reported to its caller.
      for (const databaseOpening of [store, index, knowledge, spending, suggestions])
        databaseOpening?.then((database) => database.close()).catch(() => {})
      openedIndex?.close()
      topicFacts?.close()
    },
  }
}
