/** Meaningless words, the same for the same seed: text that hardly compresses, and that no rule takes for a secret. */
export function randomWords(seed: number): (count: number) => string {
  let state = seed * 2_654_435_761 + 1
  const next = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  const syllable = () => "bdfgklmnprstvz"[next(14)]! + "aeiou"[next(5)]!
  const word = () => Array.from({ length: 2 + next(3) }, syllable).join("")
  return (count) => Array.from({ length: count }, word).join(" ")
}
