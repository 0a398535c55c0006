/** Where prices change with the size of a request. What was spent is kept apart by these, so that each part has one price. */
export const CONTEXT_STEPS = [128_000, 199_999, 200_000, 271_999, 272_000, 512_000]

/** The highest of the steps that a request of so many tokens is beyond; 0 where it is beyond none. */
export function contextStep(tokens: number): number {
  return CONTEXT_STEPS.findLast((step) => tokens > step) ?? 0
}
