declare const OPAQUE: unique symbol

/**
 * The index's own id of a message or a card. It is only valid for the index that returned it. Ids have no order, and another
 * index may use different ones.
 */
export type DocId = { readonly [OPAQUE]: "doc" }

// Only store/index may convert between ids and row numbers. All casts are in this file.

export function docId(row: number): DocId {
  return row as unknown as DocId
}

export function rowOf(doc: DocId): number {
  return doc as unknown as number
}
