import type { Item, Moment } from "../../core/suggestion.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"

/** A possible item. Its relevance is computed from its `features`. */
export type Candidate = Omit<Item, "relevance" | "estimated_tokens"> & {
  /** Files, symbols and other names in the item. If the session knows all of them, the item is useless. */
  names: string[]
}

/** A section of a document that may name what the moment is about. */
export type NamingSection = { ref: string; document: string; headings: readonly string[]; text: string }
/** A conversation that may name the symbol, and its best message. */
export type NamingConversation = {
  ref: string
  /** Two conversations of one family have the same key. */
  key: string
  title?: string
  at?: number
  by: "person" | "agent"
  imported_from?: string
  text: string
}

export type Sources = {
  knowledge: Knowledge
  /** Sections of documents that may name the moment's symbol or file, and conversations that may name the symbol. Best first. */
  documents?: readonly NamingSection[]
  conversations?: readonly NamingConversation[]
  /** The earlier conversation that the prompt is about. */
  recalled?: Candidate
  /** How many days a change counts as recent. */
  recent_change_days?: number
}

/**
 * Finds items of one kind. Must do only a limited amount of work. The moment's file is relative to its project. Leaves out
 * doubtful items.
 */
export type Finder = (sources: Sources, moment: Moment, session: Session) => Candidate[]

/** Everything that the current session already knows, so that dex does not suggest it again. */
export type Session = {
  /** The files worked on so far, oldest first, relative to the project. */
  files: readonly string[]
  /** The person's words so far. */
  prompt: string
  /** True if the person or the agent has mentioned the name. */
  hasMentioned(name: string): boolean
  /** True if a tool's output contained the name. */
  hasListed(name: string): boolean
  /** The keys of earlier suggestions. */
  seen: ReadonlySet<string>
}

export const NEW_SESSION: Session = {
  files: [],
  prompt: "",
  hasMentioned: () => false,
  hasListed: () => false,
  seen: new Set(),
}

const PLAIN_NAME = /^[\p{L}\p{N}._-]{1,40}$/u

/** Who is named for a conversation. The name in a history that was imported may be anything, even an instruction. */
export function speakerName(imported_from: string | undefined, own = "The developer"): string {
  if (imported_from === undefined) return own
  return PLAIN_NAME.test(imported_from) ? imported_from : "Somebody else"
}

/** The first line of a text, cut between words. */
export function beginningOf(quote: string, length: number): string {
  const [line = ""] = quote.split("\n")
  return line.length <= length ? line : `${line.slice(0, length).replace(/\s+\S*$/, "")}…`
}
