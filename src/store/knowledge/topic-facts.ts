import { openReadOnly } from "../sqlite/database.ts"
import { changedSince } from "./git.ts"
import type { Knowledge } from "./knowledge.ts"
import {
  conversationCount,
  conversationsSharing,
  matchedConversation,
  saysChangeAfter,
  topicOf,
  topicsWith,
} from "./turns.ts"

/** The facts that say whether something changed later. */
export type TopicFacts = {
  turns: Pick<
    Knowledge["turns"],
    "conversationCount" | "conversationsSharing" | "matchedConversation" | "saysChangeAfter" | "topicOf" | "topicsWith"
  >
  git: Pick<Knowledge["git"], "changedSince">
}

/** The number of the knowledge's migrations. Its format is part of the file's name. */
const VERSION = 1
const BUSY_MS = 1_000

/**
 * Opens the knowledge for these facts only, because loading all of knowledge.ts costs a quarter of a search. Returns undefined if
 * there is none.
 */
export function readTopicFacts(path: string): (TopicFacts & { close(): void }) | undefined {
  const db = openReadOnly(path, VERSION, BUSY_MS)
  if (!db) return undefined
  return {
    turns: {
      conversationCount: (...args) => conversationCount(db, ...args),
      conversationsSharing: (...args) => conversationsSharing(db, ...args),
      matchedConversation: (...args) => matchedConversation(db, ...args),
      saysChangeAfter: (...args) => saysChangeAfter(db, ...args),
      topicOf: (...args) => topicOf(db, ...args),
      topicsWith: (...args) => topicsWith(db, ...args),
    },
    git: { changedSince: (...args) => changedSince(db, ...args) },
    close: () => db.close(),
  }
}
