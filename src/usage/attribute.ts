/** A commit or a pull request, and one conversation that it came from, at the time at which that had made it. */
export type Origination = { name: string; conversation: number; at: number }

/**
 * Which of the things that were made each row was spent for: the next one that its conversation made after it. With
 * `afterwards`, what was spent after the last one is spent for that one too, as on a pull request; otherwise for none.
 * Which conversations a thing came from is the caller's to say: those that ran the commit, or those that wrote its lines.
 */
export function attributed<Row extends { conversation: number; at: number }>(
  rows: Row[],
  made: Origination[],
  { afterwards }: { afterwards: boolean },
): Map<Row, string | undefined> {
  const byConversation = Map.groupBy(
    made.toSorted((a, b) => a.at - b.at),
    ({ conversation }) => conversation,
  )
  return new Map(
    rows.map((row) => {
      const things = byConversation.get(row.conversation) ?? []
      const next = things.find(({ at }) => at >= row.at) ?? (afterwards ? things.at(-1) : undefined)
      return [row, next?.name]
    }),
  )
}
