import { isAbsolute, relative } from "node:path"
import type { Effect } from "../../src/core/conversation.ts"
import { messageText } from "../../src/core/format.ts"
import { collectionOf, formatRef, isSameConversation, type Ref, sourceWithOwner } from "../../src/core/ref.ts"
import { estimateTokens } from "../../src/core/tokens.ts"
import { totalUsage } from "../../src/core/usage.ts"
import type {
  Collection,
  ConversationRow,
  ConversationWrite,
  HistoryReader,
  HistoryWriter,
  ListFilter,
  MadeRow,
  MessageWrite,
  Progress,
  SourceReport,
  StoredMessage,
  UnitWrite,
} from "../../src/store/history/store.ts"

/** The methods that the reading half of the contract suite needs for writing. */
export type HistoryFiller = Pick<HistoryWriter, "setPrivate" | "saveCollection" | "saveProgress"> & {
  writeUnit(write: UnitWrite): Promise<unknown>
  forget(refs: Ref[]): Promise<unknown>
}

type Numbered = { number: number; version: number; message: MessageWrite }
/** `place`: the order of arrival; `seq`: the last change in the feed. */
type StoredConversation = {
  ref: Ref
  place: number
  seq: number
  last: number
  unit: UnitWrite["unit"]
  written: ConversationWrite
  messages: Numbered[]
}

/**
 * A history in plain arrays, which computes every answer in the simplest way. A new version of a conversation replaces the old
 * one: merging what several files say is a writer's work.
 */
export function memoryHistory(
  id = "memory",
  /** The owner of a unit's files, if several people share the history. */
  ownerOf: (unit: UnitWrite["unit"]) => string | undefined = () => undefined,
): HistoryReader & HistoryFiller {
  let kept: StoredConversation[] = []
  let seq = 0
  let places = 0
  let progress: Progress | undefined
  const units = new Map<string, UnitWrite>()
  const deleted: { place: number; seq: number; ref?: undefined }[] = []
  const gone = new Set<string>()
  const hidden = new Set<string>()
  const collections = new Map<string, Collection>()

  const find = (ref: Ref) => kept.find((one) => isSameConversation(one.ref, ref))
  /** A fork repeats its parent's messages under the same keys: the conversation whose file is older has the original. */
  const originals = (one: StoredConversation) =>
    kept.filter((other) => hasSameOwnerAndSource(other.ref, one.ref) && isOlder(other, one))
  const isCopied = (one: StoredConversation, { message }: Numbered) =>
    originals(one).some((other) => keysOf(other).has(message.key))
  const copiedIn = (one: StoredConversation) => one.messages.filter((message) => isCopied(one, message))
  const forkOf = (one: StoredConversation) =>
    originals(one)
      .map((other) => ({ other, shared: one.messages.filter(({ message }) => keysOf(other).has(message.key)).length }))
      .filter(({ shared }) => shared > 0)
      .sort((a, b) => b.shared - a.shared)[0]?.other.ref.id
  const counted = (one: StoredConversation) =>
    one.messages.filter((message) => !message.message.superseded && !isCopied(one, message))
  const messagesOf = (one: StoredConversation | undefined) =>
    (one?.messages ?? []).map((message) => toStored(message, isCopied(one!, message)))

  const rowOf = (one: StoredConversation): ConversationRow => {
    const { written, unit, ref } = one
    const live = written.messages.filter((message) => !message.superseded)
    const shown = live.length > 0 ? live : written.messages
    const times = shown.flatMap(({ at }) => at ?? []).sort((a, b) => a - b)
    return withoutUndefined({
      ref,
      kind: written.kind,
      title: written.title,
      project: written.project,
      private: written.project !== undefined && hidden.has(written.project),
      cwds: written.cwds,
      git_branch: written.git_branch,
      agent_version: written.agent_version,
      parent: written.parent,
      fork_of: written.fork_of ?? forkOf(one),
      started_at: written.started_at ?? times[0],
      ended_at: written.ended_at ?? times.at(-1),
      models: [...new Set(shown.flatMap(({ model }) => model ?? []))],
      usage: totalUsage(counted(one).map(({ message }) => message.usage)),
      message_count: shown.length,
      superseded: live.length === 0 && shown.length > 0,
      copied_count: copiedIn(one).filter(({ message }) => !message.superseded).length,
      estimated_tokens: sum(shown.map((message) => estimateTokens(messageText(message, "stripped")))),
      text_bytes: sum(written.messages.flatMap(({ parts }) => parts.map(({ text }) => Buffer.byteLength(text)))),
      path: unit.path,
      archived: false,
    })
  }
  const countsOf = (list: StoredConversation[]) => ({
    conversations: list.length,
    messages: sum(
      list.map((one) => rowOf(one)).map((row) => (row.superseded ? 0 : row.message_count) - row.copied_count),
    ),
  })
  const keptExcept = (projects: readonly string[] = []) =>
    kept.filter(({ written }) => !projects.includes(written.project ?? ""))
  const isOpen = ({ written }: StoredConversation, inside: string | undefined) =>
    written.project === undefined || !hidden.has(written.project) || written.project === inside

  const write = (unit: UnitWrite, written: ConversationWrite) => {
    const ref = withoutUndefined({ owner: ownerOf(unit.unit), source: unit.source, id: written.id })
    const before = find(ref)
    if (gone.has(formatRef(ref)) || (before && JSON.stringify(before.written) === JSON.stringify(written))) return
    const one: StoredConversation = before ?? {
      ref,
      place: places++,
      seq: 0,
      last: 0,
      unit: unit.unit,
      written,
      messages: [],
    }
    const old = new Map(one.messages.map((message) => [message.message.key, message]))
    const version = seq + 1
    one.messages = written.messages.map((message) => {
      const same = old.get(message.key)
      if (same && JSON.stringify(same.message) === JSON.stringify(message)) return same
      return { number: same?.number ?? ++one.last, version, message }
    })
    Object.assign(one, { written, unit: unit.unit })
    if (!before) kept.push(one)
    // If an original arrives after its fork, the fork's messages become copies, so the fork changes too.
    const forks = kept.filter((other) => other !== one && originals(other).includes(one) && forkOf(other) === ref.id)
    for (const changed of [...forks, one]) changed.seq = ++seq
  }

  return {
    writeUnit: async (unit) => {
      units.set(`${unit.source} ${unit.unit.key}`, unit)
      for (const written of unit.conversations) write(unit, written)
    },
    forget: async (refs) => {
      for (const ref of refs) {
        gone.add(formatRef(ref))
        const one = find(ref)
        if (one) deleted.push({ place: one.place, seq: ++seq })
        kept = kept.filter((other) => other !== one)
      }
    },
    setPrivate: async (project, isPrivate) => {
      if (!isPrivate && !hidden.has(project) && !kept.some(({ written }) => written.project === project)) return false
      hidden[isPrivate ? "add" : "delete"](project)
      return true
    },
    saveCollection: async (collection) => void collections.set(collection.name, collection),
    saveProgress: async (now) => {
      progress = now
    },

    id: async () => id,
    revision: async () => `${id}@${seq}`,
    changes: async (after, limit) => {
      const [of, from] = after?.split("@") ?? [id, "0"]
      if (of !== id || Number(from) > seq) return { changes: [], token: `${id}@0`, more: true, rebuild: true }
      const later = [...kept, ...deleted]
        .filter((one) => one.seq > Number(from))
        .sort((a, b) => a.seq - b.seq)
        .slice(0, limit)
      return {
        changes: later.map((one) => ({
          conversation: String(one.place),
          deleted: one.ref === undefined,
          ...(one.ref && { ref: one.ref }),
        })),
        token: `${id}@${later.at(-1)?.seq ?? from}`,
        more: later.length === limit,
        rebuild: false,
      }
    },

    resolve: async ({ prefix, source, owner }, except) => {
      const among = keptExcept(except).filter(
        ({ ref }) => (source === undefined || ref.source === source) && (owner === undefined || ref.owner === owner),
      )
      const exact = among.filter(({ ref }) => ref.id === prefix)
      return (exact.length > 0 ? exact : among.filter(({ ref }) => ref.id.startsWith(prefix))).map(rowOf)
    },
    conversation: async (ref) => {
      const one = find(ref)
      return one && rowOf(one)
    },
    list: async (filter) => {
      const rows = kept
        .filter((one) => isOpen(one, filter.inside))
        .map(rowOf)
        .filter((row) => isListed(row, filter))
        .sort((a, b) => (b.ended_at ?? 0) - (a.ended_at ?? 0) || (a.ref.id < b.ref.id ? -1 : 1))
      const shown = rows.filter(({ kind }) => filter.kinds?.includes(kind) ?? true)
      return {
        rows: shown.slice(filter.offset, filter.offset + filter.limit),
        total: shown.length,
        left_out: tally(rows.filter((row) => !shown.includes(row)).map(({ kind }) => kind)),
      }
    },
    spans: async (filter) =>
      kept
        .filter((one) => isOpen(one, filter.inside))
        .map(rowOf)
        .filter((row) => isListed(row, filter) && (filter.kinds?.includes(row.kind) ?? true))
        .map(({ ref, project, started_at, ended_at }) =>
          withoutUndefined({ source: ref.source, project, started_at, ended_at }),
        ),
    messages: async (ref, numbers) => messagesOf(find(ref)).filter(({ number }) => numbers?.includes(number) ?? true),
    versions: async (ref) => {
      const one = find(ref)
      return (one?.messages ?? [])
        .map((message) => ({ number: message.number, version: message.version, copied: isCopied(one!, message) }))
        .sort((a, b) => a.number - b.number)
    },

    titles: async (refs) => refs.map((ref) => find(ref)?.written.title?.text ?? ""),
    touching: async (file) => {
      const wanted = file.replaceAll("\\", "/")
      const holds = (one: StoredConversation, path: string) =>
        (isAbsolute(path) ? path : `${one.written.project}/${path}`).includes(wanted)
      return kept.filter((one) => touched(one).some(({ path }) => holds(one, path))).map(({ ref }) => ref)
    },
    usingModel: async (model) =>
      kept
        .filter((one) => rowOf(one).models.some((name) => name.toLowerCase().includes(model.toLowerCase())))
        .map(({ ref }) => ref),
    tagged: async () => [],
    keptOnlyHere: async () => kept.filter((one) => rowOf(one).superseded).map(({ ref }) => ref),
    filesOf: async (ref) => {
      const all = touched(find(ref))
      const edited = all.filter(({ action }) => action === "edited")
      return [...new Set([...edited, ...all].map(({ path }) => path))]
    },
    editedFiles: async (ref, limit) => {
      const edits = touched(find(ref)).filter(({ action }) => action === "edited")
      const times = Object.entries(tally(edits.map(({ path }) => path)))
      return times
        .sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))
        .slice(0, limit)
        .map(([path]) => path)
    },
    commandsOf: async (ref) =>
      effectsOf(find(ref)?.messages).flatMap(({ number, effect }) => {
        if (effect.type !== "command") return []
        const { command, exit_status, failed, error } = effect
        return [withoutUndefined({ number, command, exit_status, failed, error })]
      }),
    madeIn: async (ref) =>
      effectsOf(find(ref)?.messages).flatMap(({ number, effect }): MadeRow[] => {
        if (effect.type === "pull_request") return [{ number, kind: effect.type, name: effect.url }]
        if (effect.type !== "commit") return []
        const { hash: name, subject, branch } = effect
        return [withoutUndefined({ number, kind: effect.type, name, subject, branch })]
      }),
    commits: async ({ limit, inside }) =>
      kept
        .filter((one) => isOpen(one, inside))
        .flatMap((one) => effectsOf(counted(one)).map((made) => ({ one, ...made })))
        .flatMap(({ one, number, at, effect }) =>
          effect.type === "commit"
            ? [withoutUndefined({ ref: { ...one.ref, number }, hash: effect.hash, subject: effect.subject, at })]
            : [],
        )
        .sort((a, b) => (b.at ?? 0) - (a.at ?? 0))
        .slice(0, limit),
    work: async (refs) =>
      refs.map((ref) => {
        const one = find(ref)
        const effects = effectsOf(one && counted(one)).map(({ effect }) => effect)
        const edits = effects.flatMap((effect) =>
          effect.type === "file" && effect.action === "edited" ? [effect] : [],
        )
        return {
          lines_added: sum(edits.map(({ added = 0 }) => added)),
          lines_removed: sum(edits.map(({ removed = 0 }) => removed)),
          files: new Set(edits.map(({ path }) => path)).size,
          commits: new Set(effects.flatMap((effect) => (effect.type === "commit" ? [effect.hash] : []))).size,
        }
      }),
    around: async ({ number, ...ref }, before, after) => {
      const own = find(ref)
      if (!own?.messages.some((message) => message.number === number)) return []
      const mates = kept.filter(
        (one) => one === own || (one.written.project && one.written.project === own.written.project),
      )
      const said = mates
        .flatMap((one) => counted(one).map((message) => ({ one, ...message })))
        .filter(({ message }) => message.at !== undefined)
        .sort((a, b) => a.message.at! - b.message.at! || a.one.place - b.one.place || a.number - b.number)
      const at = said.findIndex((message) => message.one === own && message.number === number)
      if (at < 0) return [{ ...ref, number }]
      return said.slice(Math.max(0, at - before), at + after + 1).map(({ one, number }) => ({ ...one.ref, number }))
    },

    stats: async (except) => {
      const written = keptExcept(except).filter(({ written }) => written.kind !== "document")
      const rows = written.map(rowOf)
      const times = rows.flatMap(({ started_at, ended_at }) => [started_at, ended_at]).filter((at) => at !== undefined)
      return withoutUndefined({
        ...countsOf(written),
        estimated_tokens: sum(rows.map((row) => row.estimated_tokens)),
        text_bytes: sum(rows.map((row) => row.text_bytes)),
        earliest: times.length > 0 ? Math.min(...times) : undefined,
        latest: times.length > 0 ? Math.max(...times) : undefined,
        sources: tally(rows.map(({ ref }) => ref.source)),
        kinds: tally(rows.map(({ kind }) => kind)),
      })
    },
    storedSources: async () => {
      const read = [...units.values()].map(({ source }) => source)
      return [...new Set(read)].filter((source) => source !== "docs").sort()
    },
    sourceReport: async () => {
      const read = [...units.values()].filter(({ source }) => source !== "docs")
      return [...new Set(read.map(({ source }) => source))].sort().map((source): SourceReport => {
        const own = read.filter((unit) => unit.source === source)
        const rows = kept.filter(({ ref }) => ref.source === source)
        const ends = rows.flatMap((one) => rowOf(one).ended_at ?? [])
        return withoutUndefined({
          source,
          units: own.length,
          archived: 0,
          ...countsOf(rows),
          kinds: tally(rows.map(({ written }) => written.kind)),
          last_at: ends.length > 0 ? Math.max(...ends) : undefined,
          skipped: tally(own.flatMap(({ skipped }) => skipped.map(({ reason }) => reason))),
          unknown: total(own.map(({ unknown }) => unknown)),
          redactions: total(own.map(({ redactions }) => redactions)),
          unreadable: [],
        })
      })
    },
    collections: async () => [...collections.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    documentsIn: async (name) => {
      const rows = kept.filter(({ ref }) => ref.source === "docs" && ref.id.startsWith(`${name}/`)).map(rowOf)
      return {
        documents: rows.length,
        sections: sum(rows.map(({ message_count }) => message_count)),
        estimated_tokens: sum(rows.map(({ estimated_tokens }) => estimated_tokens)),
      }
    },
    projects: async () => {
      const paths = new Set([...kept.flatMap(({ written }) => written.project ?? []), ...hidden])
      return [...paths].sort().map((path) => ({ path, private: hidden.has(path) }))
    },
    busiestProjects: async (limit, except) => {
      const busy = keptExcept(except).filter(
        ({ written }) => written.kind !== "subagent" && written.kind !== "document",
      )
      return Object.entries(tally(busy.flatMap(({ written }) => written.project ?? [])))
        .sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))
        .slice(0, limit)
        .map(([path]) => ({ path, private: hidden.has(path) }))
    },

    conversationsIn: async (projects) =>
      kept.filter(({ written }) => projects.includes(written.project ?? "")).map(({ ref }) => ref),

    withSubagents: async (refs) => {
      const found = [...refs]
      for (const ref of found)
        for (const row of kept.map(rowOf))
          if (
            hasSameOwnerAndSource(row.ref, ref) &&
            row.parent?.id === ref.id &&
            !found.some((one) => isSameConversation(one, row.ref))
          )
            found.push(row.ref)
      return found
    },
    family: async (refs) => {
      const found = [...refs]
      for (const ref of found) {
        const isCopy = (row: ConversationRow | undefined) => row !== undefined && row.copied_count > 0
        const own = find(ref)
        const related = kept
          .map(rowOf)
          .filter(
            (row) =>
              hasSameOwnerAndSource(row.ref, ref) &&
              (row.parent?.id === ref.id ||
                (row.fork_of === ref.id && isCopy(row)) ||
                (own !== undefined && rowOf(own).fork_of === row.ref.id && isCopy(rowOf(own)))),
          )
        for (const row of related) if (!found.some((one) => isSameConversation(one, row.ref))) found.push(row.ref)
      }
      return found
    },
    forgotten: async () => gone.size,
    progress: async () => progress,
    close: () => {},
  }
}

/** True if both belong to the same person and agent. */
function hasSameOwnerAndSource(a: Ref, b: Ref): boolean {
  return sourceWithOwner(a) === sourceWithOwner(b)
}

function isOlder(a: StoredConversation, b: StoredConversation): boolean {
  return a.unit.bornAt === b.unit.bornAt ? a.ref.id < b.ref.id : a.unit.bornAt < b.unit.bornAt
}

function keysOf({ messages }: StoredConversation): Set<string> {
  return new Set(messages.map(({ message }) => message.key))
}

function toStored({ number, message }: Numbered, copied: boolean): StoredMessage {
  const { role, at, model, parts, effects = [], usage, abandoned = false, superseded = false } = message
  return withoutUndefined({ number, role, at, model, parts, effects, usage, abandoned, superseded, copied })
}

function isListed(row: ConversationRow, filter: Omit<ListFilter, "limit" | "offset">): boolean {
  const { conversation, collections, from, to } = filter
  return (
    (filter.source === undefined || row.ref.source === filter.source) &&
    (filter.project === undefined || row.project?.toLowerCase().includes(filter.project.toLowerCase()) === true) &&
    (filter.in_project === undefined || row.project === filter.in_project) &&
    (conversation === undefined ||
      (hasSameOwnerAndSource(row.ref, conversation) && [row.ref.id, row.parent?.id].includes(conversation.id))) &&
    (filter.among === undefined || filter.among.some((ref) => isSameConversation(ref, row.ref))) &&
    (from === undefined || (row.ended_at !== undefined && row.ended_at >= from)) &&
    (to === undefined || (row.started_at !== undefined && row.started_at <= to)) &&
    (row.kind === "document") === (collections !== undefined) &&
    (collections === undefined || collections.includes(collectionOf(row.ref.id)))
  )
}

function effectsOf(messages: Numbered[] = []): { number: number; at: number | undefined; effect: Effect }[] {
  return messages.flatMap(({ number, message: { at, effects = [] } }) =>
    effects.map((effect) => ({ number, at, effect })),
  )
}

/** Files by their path inside the project, or by the complete path if they are elsewhere. */
function touched(one: StoredConversation | undefined): { path: string; action: string }[] {
  return effectsOf(one?.messages).flatMap(({ effect }) => {
    if (effect.type !== "file") return []
    const below = isAbsolute(effect.path) ? relative(one?.written.project ?? "/", effect.path) : effect.path
    return [{ path: below.startsWith("..") ? effect.path : below, action: effect.action }]
  })
}

/** The object without undefined properties. */
function withoutUndefined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T
}

function sum(values: number[]): number {
  return values.reduce((all, value) => all + value, 0)
}

function tally(names: string[]): Record<string, number> {
  return total(names.map((name) => ({ [name]: 1 })))
}

function total(counts: Record<string, number>[]): Record<string, number> {
  const all: Record<string, number> = {}
  for (const count of counts) for (const [name, n] of Object.entries(count)) all[name] = (all[name] ?? 0) + n
  return all
}
