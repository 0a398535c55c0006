/** Runs `work` on every item, at most `most` at once, and gives the results in order. */
export async function inParallel<T, R>(
  items: T[],
  most: number,
  work: (item: T, i: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = new Array(items.length)
  let next = 0
  const worker = async () => {
    while (next < items.length) {
      const i = next++
      results[i] = await work(items[i]!, i)
    }
  }
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, worker))
  return results
}
