import type { Item, Moment } from "../../core/suggestion.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { Session } from "../session.ts"

/** A possible item. Its relevance is computed from its `features`. */
export type Candidate = Omit<Item, "relevance" | "estimated_tokens"> & {
  /** Files, symbols and other names in the item. If the session knows all of them, the item is useless. */
  names: string[]
}

export type Sources = {
  knowledge: Knowledge
  /** Sections about the subject of the moment. */
  documents?: readonly { ref: string; heading: string; text: string }[]
  /** How many days a change counts as recent. */
  recent_change_days?: number
}

/** Finds one kind of item, with bounded work. The moment's file is relative to its project. Leaves out doubtful items. */
export type Finder = (sources: Sources, moment: Moment, session: Session) => Candidate[]
