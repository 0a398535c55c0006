import type { Origin } from "../core/conversation.ts"
import { isoDate } from "../core/dates.ts"
import { messageText } from "../core/format.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import { safe } from "../render/terminal.ts"
import type { StoredMessage } from "../store/history/store.ts"
import { type ChangedLater, laterChangeLines } from "../tools/changed-later.ts"
import { sectionMarkOf } from "../tools/docs/sections.ts"
import type { PassageRow } from "./passage-source.ts"
import type { ProjectSection } from "./project-documents.ts"

/** A message or section that was read. An answer cites it by its number. */
export type Passage = {
  n: number
  ref: string
  conversation: Ref
  title: string
  origins: Origin[]
  at?: number
  /** The complete stored text, against which quotes are checked. */
  text: string
  /** Whether something later changed what its conversation is about. */
  changed?: ChangedLater
  /** Set for a section of a project file, which is not stored in the history. */
  file?: { path: string; section?: string }
}

/** The passages of one answer. Reading a passage again does not change its number. */
export type Passages = {
  /** Returns undefined if no part of the message is evidence. Text that a hook or dex inserted is never evidence. */
  add(row: PassageRow, message: StoredMessage): Passage | undefined
  addSection(section: ProjectSection): Passage
  get(n: number): Passage | undefined
}

export function createPassages(changesOf: (ref: Ref) => ChangedLater = () => ({})): Passages {
  const byRef = new Map<string, Passage>()
  return {
    add(row, complete) {
      const message = { ...complete, parts: complete.parts.filter((part) => part.origin !== "injected") }
      if (message.parts.length === 0) return undefined
      const section = sectionMarkOf(message)?.name
      const ref = formatRef(section ? { ...row.ref, section } : { ...row.ref, number: message.number })
      const existing = byRef.get(ref)
      if (existing) return existing
      const passage: Passage = {
        n: byRef.size + 1,
        ref,
        conversation: row.ref,
        title: row.title?.text ?? "",
        origins: [...new Set(message.parts.map((part) => part.origin))],
        text: messageText(message, "full"),
        at: message.at ?? row.ended_at,
        changed: changesOf(row.ref),
      }
      byRef.set(ref, passage)
      return passage
    },
    addSection({ path, line, headings, text, at }) {
      const ref = `${path}:${line}`
      const existing = byRef.get(ref)
      if (existing) return existing
      const passage: Passage = {
        n: byRef.size + 1,
        ref,
        conversation: { source: "docs", id: path },
        title: headings.join(" › ") || path,
        origins: ["document"],
        text,
        at,
        file: { path, section: headings.at(-1) },
      }
      byRef.set(ref, passage)
      return passage
    },
    get: (n) => [...byRef.values()][n - 1],
  }
}

export function dayOf({ at }: Pick<Passage, "at">): string | undefined {
  return at === undefined ? undefined : isoDate(at).slice(0, 10)
}

/** Sorts by date, newest first: if two passages contradict each other, the newer one is more likely to be right. */
export function newestFirst(passages: Passage[]): Passage[] {
  return [...passages].sort((a, b) => (b.at ?? 0) - (a.at ?? 0) || a.n - b.n)
}

/**
 * A passage as the model sees it. Its source comes first, and every line is marked, so that nothing in it can look like an
 * instruction or the end of the passage.
 */
export function passageForModel(passage: Passage, chars: number): string {
  const { n, ref, title, origins, at, text, changed = {} } = passage
  const head = [
    ref,
    dayOf({ at }),
    `words of: ${origins.join(", ")}`,
    JSON.stringify(safe(title).slice(0, 80)),
    ...laterChangeLines(changed),
  ]
  const shortened =
    text.length > chars ? `${text.slice(0, chars)}\n(cut: ${text.length - chars} characters more)` : text
  const lines = safe(shortened)
    .split("\n")
    .map((line) => `| ${line}`)
  return [`[${n}] ${head.filter((part) => part !== undefined).join(" · ")}`, ...lines].join("\n")
}
