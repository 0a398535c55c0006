declare const OPAQUE: unique symbol

/**
 * A message or a card in the index, as the index itself names it. It is handed back to the index that gave it, and says
 * nothing else: it has no order, and another index may name things in another way.
 */
export type DocId = { readonly [OPAQUE]: "doc" }

// It is a row's number, which only store/index may know: hence the casts, here and nowhere else.

export function docId(row: number): DocId {
  return row as unknown as DocId
}

export function rowOf(doc: DocId): number {
  return doc as unknown as number
}
