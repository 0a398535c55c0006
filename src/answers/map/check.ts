import { formatRef, parseWholeRef, type Ref } from "../../core/ref.ts"
import { readAs, type Schema } from "../../core/schema.ts"
import { jsonIn } from "../../llm/json-text.ts"
import type { ModelReply } from "../../llm/model.ts"
import { redactRecord } from "../../redact/redact.ts"
import { linksIn } from "../cited.ts"
import { itemsOf, listsOf, type MapItem, type MapResult } from "./schema.ts"

/** What was taken out of an answer, by why. */
export type Dropped = { foreign_refs: number; items_without_refs: number; items_with_foreign_links: number }
export const NOTHING_DROPPED: Dropped = { foreign_refs: 0, items_without_refs: 0, items_with_foreign_links: 0 }

export type CheckedReply = { ok: { result: MapResult; dropped: Dropped } } | { wrong: string }

/**
 * Takes of an answer what fits the schema and stands on what was shown: `holds` says whether a ref was, `data` is all of
 * it. `wrong` is in words for the model, and holds none of its own.
 */
export function checkReply(
  reply: Pick<ModelReply, "text" | "finish">,
  schema: Schema,
  holds: (ref: Ref) => boolean,
  data: string,
): CheckedReply {
  if (reply.finish === "length") return { wrong: "it was cut off, because it was too long; say it in fewer words" }
  const json = jsonIn(reply.text)
  if (typeof json !== "object" || json === null || Array.isArray(json)) return { wrong: "it held no JSON object" }
  const fitting = readAs(schema, json)
  if ("wrong" in fitting) return { wrong: inOurWords(fitting.wrong) }
  const result = redactRecord(fitting.ok as Record<string, never>).record as MapResult
  const dropped = { ...NOTHING_DROPPED }
  let given = 0
  let kept = 0
  for (const name of listsOf(schema)) {
    const items = itemsOf(result, name)
    given += items.length
    result[name] = items.flatMap((item) => takeItem(item, holds, data, dropped))
    kept += itemsOf(result, name).length
  }
  if (given > 0 && kept === 0)
    return { wrong: "no item has a ref of the data, exactly as it is there, and no foreign link" }
  return { ok: { result, dropped } }
}

function takeItem(item: MapItem, holds: (ref: Ref) => boolean, data: string, dropped: Dropped): MapItem[] {
  const refs = [...new Set(item.refs.flatMap((text) => refOf(text, holds)))]
  dropped.foreign_refs += item.refs.length - refs.length
  if (refs.length === 0) dropped.items_without_refs++
  const isClean = stringsIn(item)
    .flatMap(linksIn)
    .every((link) => data.includes(link))
  if (!isClean) dropped.items_with_foreign_links++
  return refs.length > 0 && isClean ? [{ ...item, refs }] : []
}

function refOf(text: string, holds: (ref: Ref) => boolean): string[] {
  const named = parseWholeRef(text)
  if (!named) return []
  const { section: _, ...ref } = named
  return holds(ref) ? [formatRef(ref)] : []
}

function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value]
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : []
}

/** Names of fields that the schema does not have are the model's own. */
function inOurWords(wrong: string): string {
  return wrong.endsWith(" is not known") ? "it has a field that is not in the schema" : wrong
}
