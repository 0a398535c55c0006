import type { StoredMessage } from "../store/history/store.ts"
import type { TopicFacts } from "../store/knowledge/topic-facts.ts"
import type { MatchedConversation } from "../store/knowledge/turns.ts"

// Compares the topics of conversations, and finds the later one that changed what an earlier one decided.

// A changed rule and a changed commit are both amended, so the rule must be named in the same sentence.
const CHANGES =
  "(?:amend(?:s|ed|ing|ments?)?|supersed\\w*|overrul\\w*|repeal\\w*|revok\\w*|revis(?:es|ed|ing|ions?)|revers(?:es?|ed|ing)|no longer (?:applies|apply|holds?))"
const RULES = "(?:rules?|polic(?:y|ies)|decisions?|conventions?|standards?|guidelines?|agreements?)"
const CHANGED_RULE = new RegExp(
  `\\b${CHANGES}\\b[^.;:!?\\n]{0,60}\\b${RULES}\\b|\\b${RULES}\\b[^.;:!?\\n]{0,60}\\b${CHANGES}\\b`,
  "i",
)

/** Whether a person or agent says that a rule or decision is changed. */
export function saysChange(messages: readonly StoredMessage[]): boolean {
  return messages.some(({ parts, abandoned }) =>
    parts.some(
      ({ type, origin, text }) =>
        !abandoned && type === "text" && (origin === "person" || origin === "agent") && CHANGED_RULE.test(text),
    ),
  )
}

/** The least likeness of two conversations about the same thing: the cosine between the words of their topics. */
const SAME_TOPIC = 0.15
const MAX_TOPIC_WORDS = 30
const MAX_SHARING = 20

export type Topics = ReturnType<typeof topicsOf>

/** The topics of conversations: the words that one uses often and most others do not, as vectors of length 1. */
export function topicsOf(knowledge: TopicFacts, project: string) {
  const all = knowledge.turns.conversationCount(project)
  const known = new Map<number, Map<string, number>>()
  const counts = new Map<string, number>()
  const vectorOf = (conversation: number) => {
    const words = knowledge.turns.topicOf(conversation)
    const unknown = words.flatMap(([word]) => (counts.has(word) ? [] : word))
    for (const [i, count] of knowledge.turns.topicsWith(project, unknown).entries()) counts.set(unknown[i]!, count)
    const weights = words
      .map(([word, count]): [string, number] => [word, (1 + Math.log(count)) * rarity(counts.get(word)!, all)])
      .sort(([, a], [, b]) => b - a)
      .slice(0, MAX_TOPIC_WORDS)
    const length = Math.hypot(...weights.map(([, weight]) => weight))
    return new Map(weights.map(([word, weight]) => [word, weight / length]))
  }
  const of = ({ conversation }: MatchedConversation) => {
    const vector = known.get(conversation) ?? vectorOf(conversation)
    known.set(conversation, vector)
    return vector
  }
  const likeness = (one: MatchedConversation, other: MatchedConversation) => {
    const [a, b] = [of(one), of(other)]
    return [...a].reduce((sum, [word, weight]) => sum + weight * (b.get(word) ?? 0), 0)
  }
  const isShared = (one: MatchedConversation, other: MatchedConversation) => likeness(one, other) >= SAME_TOPIC
  const sharing = (one: MatchedConversation, filter: { before: number }) =>
    knowledge.turns
      .conversationsSharing(project, [...of(one).keys()], filter)
      .filter((other) => other.conversation !== one.conversation)
      .slice(0, MAX_SHARING)
      .filter((other) => isShared(one, other))
  return { of, isShared, sharing }
}

export function rarity(count: number, all: number): number {
  return Math.log(1 + (all - count + 0.5) / (count + 0.5))
}

/** The newest later conversation about the same thing that says that it changes what was decided. */
export function changeAfter(
  knowledge: TopicFacts,
  one: MatchedConversation & { project: string },
  before: number,
): MatchedConversation | undefined {
  if (!knowledge.turns.saysChangeAfter(one.project, one.started_at)) return undefined
  const later = topicsOf(knowledge, one.project)
    .sharing(one, { before })
    .filter(({ says_change, started_at }) => says_change && started_at > one.started_at)
  return later.sort((a, b) => b.started_at - a.started_at)[0]
}

/** Says how many of the files that a conversation edited have changed since, if it is more than half. */
export function changedFilesText(knowledge: TopicFacts, conversation: number): string | undefined {
  const { changed, of } = knowledge.git.changedSince(conversation)
  if (changed * 2 <= of) return undefined
  return of === 1
    ? "The file that it edited has changed since."
    : `${changed} of the ${of} files that it edited have changed since.`
}
