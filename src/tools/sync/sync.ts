import { DAY_MS } from "../../core/dates.ts"
import { isDexError } from "../../core/error.ts"
import { formatRef } from "../../core/ref.ts"
import { flag, type Infer, integer, listOf, mapOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

/**
 * A derived file of another version is deleted if it has been unused for this long, in milliseconds. It is then most likely a
 * leftover of an upgrade.
 */
const UNUSED_MS = 7 * DAY_MS

const embeddingShape = object(
  {
    embedder: text(),
    embedded: integer("Messages that were embedded, or had no text to embed."),
    left: integer("Messages that have no vector yet."),
    duration_ms: integer(),
    problem: optional(text("Why some vectors are missing.")),
  },
  "The state of the vectors, if an embedder is set.",
)

export const sync = defineTool({
  name: "sync",
  summary: "Read what the agents have written since last time",
  input: object({
    redact_again: optional(flag("Apply the newest redaction rules to everything that is stored.")),
    no_wait: optional(flag("Exit at once if another sync is running, instead of waiting for it.")),
    max_seconds: optional(integer("Stop after this many seconds; the next sync continues.", { minimum: 1 })),
  }),
  output: object({
    busy: flag("Another sync was still running; nothing was read here."),
    complete: flag("All transcripts that were found have been read."),
    found: integer("Transcripts that the agents have on disk: files, and conversations in databases."),
    read: integer("Transcripts that were new or had grown."),
    changed: integer(),
    added_messages: integer(),
    archived: integer("Transcripts whose files were deleted since last time; dex keeps them."),
    read_again: integer("Transcripts that were read again because this version of dex stores more of them."),
    bytes: integer("Source bytes that were examined."),
    duration_ms: integer(),
    kinds: mapOf(integer(), "Conversations stored now, by who ran them."),
    unreadable: listOf(object({ source: text(), path: text(), reason: text() })),
    restored: listOf(text(), "Refs of damaged conversations that were restored completely."),
    damaged: listOf(text(), "Refs of damaged conversations that could not be restored completely."),
    embedding: optional(embeddingShape),
    documents: optional(
      object(
        { changed: integer(), removed: integer() },
        "How many documents in collections changed or were removed. Absent if there are no collections, or if the sync did not finish.",
      ),
    ),
  }),
  cli: { group: "Keep", common: true, example: "dex sync" },
  run: async (dex: Dex, input) => {
    const { syncWithThreads } = await import("../../ingest/sync-thread.ts")
    const { embedderOf } = await import("../embedder.ts")
    const embed = embedderOf(dex)
    const result = await syncWithThreads(await dex.syncDeps(), dex.home.index, {
      wait: !input.no_wait,
      redactAgain: input.redact_again || undefined,
      fillsList: dex.machine.env.DEX_FILLS_LIST === "1" || undefined,
      deadline: input.max_seconds === undefined ? undefined : Date.now() + input.max_seconds * 1000,
      onProgress: dex.onProgress,
      signal: dex.signal,
      embed,
    })
    const { restored, damaged } = result
    const kinds = await storedKinds(dex)
    const report = { ...result, kinds, restored: restored.map(formatRef), damaged: damaged.map(formatRef) }
    if (!report.busy && input.redact_again) await dex.redactCopies()
    if (!report.busy && report.complete) {
      const { removeOtherFormats } = await import("../../store/sqlite/older-files.ts")
      for (const file of [dex.home.index, dex.home.knowledge, dex.home.spending])
        removeOtherFormats(file, dex.now() - UNUSED_MS)
    }
    if (!report.busy && dex.hasKnowledge()) {
      const { updatedKnowledge } = await import("../learned.ts")
      await updatedKnowledge(dex)
    }
    const { isStatusLineUpdated } = await import("../usage/line-kept.ts")
    if (!report.busy && (await isStatusLineUpdated(dex))) {
      const { saveStatusLine } = await import("../usage/keep-line.ts")
      saveStatusLine(dex, await dex.spending())
    }
    if (!report.busy && dex.hasSuggestions()) {
      const { observeUse } = await import("../../suggest/feedback/observe-use.ts")
      await observeUse(await dex.store(), await dex.suggestions(), dex.now())
    }
    if (report.busy || !report.complete || (await (await dex.store()).collections()).length === 0) return report
    const { syncCollections } = await import("../docs/sync-collections.ts")
    const reports = await syncCollections(dex, { names: [] })
    const sum = (field: "changed" | "removed") => reports.reduce((total, report) => total + report[field], 0)
    return { ...report, documents: { changed: sum("changed"), removed: sum("removed") } }
  },
})

/** The number of stored conversations by kind. Empty if the history is too damaged to count; doctor reports that. */
async function storedKinds(dex: Dex): Promise<Record<string, number>> {
  try {
    return (await (await dex.store()).stats()).kinds
  } catch (error) {
    if (isDexError(error) && error.code === "corrupt") return {}
    throw error
  }
}

const reindexInput = object({
  vectors: optional(flag("Also rebuild the vectors. Otherwise vectors of unchanged messages are kept.")),
})
export type ReindexInput = Infer<typeof reindexInput>

export const reindex = defineTool({
  name: "reindex",
  summary: "Rebuild the search index from the history",
  input: reindexInput,
  output: object({
    conversations: integer(),
    kinds: mapOf(integer(), "Number of conversations by who ran them."),
    duration_ms: integer(),
    embedding: optional(embeddingShape),
  }),
  cli: {
    group: "Keep",
    example: "dex reindex",
    formOf: { command: "doctor", word: "reindex", now: "dex doctor reindex", example: "dex doctor reindex" },
  },
  run: async (dex: Dex, input) => (await import("./run-reindex.ts")).run(dex, input),
  trace: { command: "reindex", facts: (_, output) => ({ inputs: { conversations: output.conversations } }) },
})
