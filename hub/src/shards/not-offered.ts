import type { SearchIndex } from "../../../src/store/index/search-index.ts"

const refuse = () =>
  Promise.reject(new Error("This index can only be read: each shard is written by the node that has it."))

/** The methods that an index does not support if its shards belong to other nodes. */
export const unsupportedMethods: Pick<
  SearchIndex,
  "isPart" | "scope" | "scopeWithout" | "vectors" | "follow" | "purge" | "isPurgeDue" | "check" | "checkpoint" | "close"
> = {
  isPart: true,
  scope: refuse,
  scopeWithout: refuse,
  vectors: refuse,
  follow: refuse,
  purge: refuse,
  isPurgeDue: refuse,
  check: refuse,
  checkpoint: () => {},
  close: () => {},
}
