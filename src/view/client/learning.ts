import { fetchPart, isTyping } from "./page.ts"

type Learning = { done: number; total: number; isLearning: boolean }

let latest: Learning | undefined

/** Shows the progress of learning. When learning is done, reloads the parts that were rendered before that. */
export function showLearning(learning: Learning): void {
  latest = learning
  showLatest()
}

/** Shows the latest progress in a part that was just loaded. It may have been rendered before learning ended. */
export function showLatest(): void {
  if (!latest) return
  const { done, total, isLearning } = latest
  for (const counter of document.querySelectorAll("[data-learned]")) counter.textContent = ` (${done} of ${total})`
  if (isLearning) return
  for (const outdated of document.querySelectorAll<HTMLElement>("[data-learning]")) void reloadLearned(outdated)
}

async function reloadLearned(outdated: HTMLElement): Promise<void> {
  // Does not replace a field while a person types in it.
  const focused = document.activeElement
  if (isTyping(focused) && outdated.contains(focused))
    return focused!.addEventListener("blur", () => void reloadLearned(outdated), { once: true })
  const address = outdated.dataset.learning
  if (address === undefined) return
  delete outdated.dataset.learning // so that another event does not request it again
  const isPage = outdated.tagName === "MAIN"
  const part = await fetchPart(isPage ? location.href : address)
  const newContent = isPage ? part?.querySelector<HTMLElement>("main") : (part?.firstElementChild as HTMLElement | null)
  if (!newContent) {
    outdated.dataset.learning = address // the next event tries again
    return
  }
  if (isPage) outdated.replaceChildren(...newContent.childNodes)
  else outdated.replaceWith(newContent)
  if (newContent.dataset.learning !== undefined && isPage) outdated.dataset.learning = newContent.dataset.learning
}
