import { isRecord } from "../../core/record.ts"
import type { Ref } from "../../core/ref.ts"
import { refFrom, sourceWithOwner } from "../../core/ref.ts"
import type { Db } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { refreshCounts } from "./feed.ts"
import { metaJson } from "./read/meta.ts"
import type { Marks, MarksChange } from "./store.ts"

// The tags and titles that a person gave to conversations. A conversation's marks are one setting of the history, so that no
// sync changes them, every backup contains them, and they have a checksum and a copy.

const PREFIX = "mark:"
const MAX_TITLE_LENGTH = 200
const MAX_TAGS = 50
const TAG = /^[\p{L}\p{N}][\p{L}\p{M}\p{N}._-]{0,39}$/u

export function marksOf(db: Db, source: string, nativeId: string): Marks {
  return parseMarks(metaJson(db, `${PREFIX}${source}:${nativeId}`))
}

/** Leaves out what dex cannot have written, because an imported history may contain anything. */
function parseMarks(value: unknown): Marks {
  const { title, tags } = isRecord(value) ? value : {}
  return {
    ...(typeof title === "string" && title !== "" && { title: title.slice(0, MAX_TITLE_LENGTH) }),
    tags: (Array.isArray(tags) ? tags : []).filter(isTag).slice(0, MAX_TAGS),
  }
}

/** A tag is one word, without signs that the search or a shell would read. */
export function isTag(tag: unknown): tag is string {
  return typeof tag === "string" && TAG.test(tag)
}

/** Changes a conversation's marks. The index and all others that follow the feed then read the conversation again. */
export function changeMarks(db: Db, ref: Ref, { title, addedTags = [], removedTags = [] }: MarksChange): Marks {
  const source = sourceWithOwner(ref)
  const before = marksOf(db, source, ref.id)
  const after = parseMarks({
    title: title ?? before.title,
    tags: [...new Set([...before.tags, ...addedTags])].filter((tag) => !removedTags.includes(tag)),
  })
  saveMarks(db, `${source}:${ref.id}`, after)
  const id = valueQuery(db, "select id from conversation where source = ? and native_id = ?", "integer").get(
    source,
    ref.id,
  )
  if (id !== undefined) refreshCounts(db, id)
  return after
}

function saveMarks(db: Db, name: string, marks: Marks): void {
  if (marks.title === undefined && marks.tags.length === 0) forgetMarks(db, name)
  else db.prepare("insert or replace into meta (key, value) values (?, ?)").run(PREFIX + name, JSON.stringify(marks))
}

export function forgetMarks(db: Db, name: string): void {
  db.prepare("delete from meta where key = ?").run(PREFIX + name)
}

export function conversationsWithTag(db: Db, tag: string): Ref[] {
  return readAllMarks(db).flatMap(([ref, marks]) => (marks.tags.includes(tag.toLowerCase()) ? ref : []))
}

function readAllMarks(db: Db): [Ref, Marks][] {
  const keys = valueQuery(db, "select key from meta where key >= ? and key < ? || char(0x10ffff)", "text")
  return keys.all(PREFIX, PREFIX).map((key) => {
    const [source = "", ...id] = key.slice(PREFIX.length).split(":")
    return [refFrom(source, id.join(":")), parseMarks(metaJson(db, key))]
  })
}

/** Copies the marks of another history, for conversations that exist here and have no marks of their own. */
export function importMarks(db: Db, otherDb: Db, redact: (text: string) => string): void {
  for (const [ref, { title, tags }] of readAllMarks(otherDb)) {
    const isHere = valueQuery(db, "select 1 from conversation where source = ? and native_id = ?", "integer")
    const own = marksOf(db, ref.source, ref.id)
    if (own.tags.length > 0 || own.title !== undefined || isHere.get(ref.source, ref.id) === undefined) continue
    changeMarks(db, ref, { title: title && redact(title), addedTags: tags.map(redact).filter(isTag) })
  }
}
