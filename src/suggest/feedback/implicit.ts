import { parseRef } from "../../core/ref.ts"
import type { Item } from "../../core/suggestion.ts"
import { pathBelow } from "../paths.ts"

/** What a session did after it was told something. */
export type Done = {
  /** What it opened with dex: refs as it wrote them. */
  refs: readonly string[]
  /** What it edited, whole or relative to the project. */
  files: readonly string[]
}

/**
 * The numbers of the items that were used without a word: the session opened what an item refers to, or edited the file it
 * named. `before` is what the session had edited when it was told: a file that it was at already proves nothing.
 */
export function usedItems(
  items: readonly (Pick<Item, "ref" | "file"> & { number: number })[],
  done: Done,
  project: string,
  before: readonly string[] = [],
): number[] {
  const edited = new Set(done.files.map((file) => pathBelow(project, file)))
  for (const file of before) edited.delete(pathBelow(project, file))
  return items
    .filter(
      ({ ref, file }) =>
        (file !== undefined && edited.has(pathBelow(project, file) ?? "")) ||
        (ref !== undefined && done.refs.some((opened) => opens(opened, ref))),
    )
    .map(({ number }) => number)
}

/** Opening a conversation, or any message of it, is opening what refers to it. */
function opens(opened: string, ref: string): boolean {
  if (opened === ref) return true
  const [asked, told] = [parseRef(opened), parseRef(ref)]
  if (!asked || !told) return false
  const sameSource = asked.source === undefined || asked.source === told.source
  const sameOwner = asked.owner === undefined || asked.owner === told.owner
  return sameSource && sameOwner && asked.prefix.length >= 4 && told.prefix.startsWith(asked.prefix)
}
