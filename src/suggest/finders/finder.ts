import type { Item, Moment } from "../../core/suggestion.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { Session } from "../session.ts"

/** What could be said; `features` are what its relevance is worked out from. */
export type Candidate = Omit<Item, "relevance" | "estimated_tokens"> & {
  /** Files, symbols and other names in it. What has none that are new to the session tells it nothing. */
  names: string[]
}

export type Sources = {
  knowledge: Knowledge
  /** Sections that speak of what the moment is about. */
  documents?: readonly { ref: string; heading: string; text: string }[]
  /** What a recent change is. */
  recent_change_days?: number
}

/** Finds one kind of thing. The moment's file is relative to its project. Bounded work; says nothing rather than something doubtful. */
export type Finder = (sources: Sources, moment: Moment, session: Session) => Candidate[]
