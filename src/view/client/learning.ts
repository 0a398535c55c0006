import { isTyping, partOf } from "./page.ts"

type Learning = { done: number; total: number; isLearning: boolean }

let last: Learning | undefined

/** Shows the progress of learning. When learning is done, reloads the parts that were rendered before. */
export function showLearning(learning: Learning): void {
  last = learning
  showLatest()
}

/** Does the same for a part that was just loaded: it may have been rendered before learning ended, and loaded after. */
export function showLatest(): void {
  if (!last) return
  const { done, total, isLearning } = last
  for (const place of document.querySelectorAll("[data-learned]")) place.textContent = ` (${done} of ${total})`
  if (isLearning) return
  for (const waiting of document.querySelectorAll<HTMLElement>("[data-learning]")) void reloadLearned(waiting)
}

async function reloadLearned(waiting: HTMLElement): Promise<void> {
  // Does not replace a field while a person types in it.
  const typed = document.activeElement
  if (isTyping(typed) && waiting.contains(typed))
    return typed!.addEventListener("blur", () => void reloadLearned(waiting), { once: true })
  const address = waiting.dataset.learning
  if (address === undefined) return
  delete waiting.dataset.learning // so that another event does not request it again
  const isPage = waiting.tagName === "MAIN"
  const part = await partOf(isPage ? location.href : address)
  const fresh = isPage ? part?.querySelector<HTMLElement>("main") : (part?.firstElementChild as HTMLElement | null)
  if (!fresh) {
    waiting.dataset.learning = address // the next event tries again
    return
  }
  if (isPage) waiting.replaceChildren(...fresh.childNodes)
  else waiting.replaceWith(fresh)
  if (fresh.dataset.learning !== undefined && isPage) waiting.dataset.learning = fresh.dataset.learning
}
