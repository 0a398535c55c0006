import { announce, base, fetchPart, isTyping } from "./page.ts"

/** Updates an open page while agents write. The browser keeps the stream open, so there are no timers here. */
export function followChanges(): void {
  const stream = new EventSource(`${base}/changes`)
  // By default, the browser would retry every few seconds while the page is open. Instead, it retries when the page gets the
  // focus.
  stream.onerror = () => {
    stream.close()
    addEventListener("focus", followChanges, { once: true })
  }
  stream.onmessage = ({ data }) => {
    const refs = JSON.parse(data as string) as string[]
    const conversation = document.querySelector<HTMLElement>(".reading")
    if (conversation && refs.includes(conversation.dataset.ref ?? "")) void addNewest(conversation)
    for (const section of document.querySelectorAll<HTMLElement>("[data-live]")) void reloadPart(section)
  }
  stream.addEventListener("learning", ({ data }) => showLearning(JSON.parse(data as string)))
  addEventListener("pagehide", () => stream.close(), { once: true })
}

/** Reloads a part of the page from its address. */
async function reloadPart(section: HTMLElement): Promise<void> {
  const newContent = (await fetchPart(section.dataset.live!))?.firstElementChild
  if (!newContent || newContent.innerHTML === section.innerHTML || section.dataset.live === undefined) return
  // Keeps the focus on the same row.
  const address = section.querySelector(".row:focus a, .row a:focus")?.getAttribute("href")
  section.replaceChildren(...newContent.childNodes)
  if (address == null) return
  const sameRow = [...section.querySelectorAll<HTMLElement>(".row")].find(
    (row) => row.querySelector("a")?.getAttribute("href") === address,
  )
  sameRow?.focus({ preventScroll: true })
}

const NEAR_END_PIXELS = 200

/** Reloads the last part of the conversation. Messages that have not changed stay as they are, open or closed. */
async function addNewest(conversation: HTMLElement): Promise<void> {
  const lastPart = conversation.querySelector<HTMLElement>(".part[data-last]")
  if (!lastPart) return // the end is not on the page
  const wasAtEnd = innerHeight + scrollY > document.documentElement.scrollHeight - NEAR_END_PIXELS
  const address = `${base}/c/${encodeURIComponent(conversation.dataset.ref ?? "")}/part?from=${lastPart.dataset.from}`
  const newPart = (await fetchPart(address))?.querySelector<HTMLElement>(".part")
  if (!newPart) return
  let added = 0
  for (const article of newPart.querySelectorAll("article")) {
    const existing = document.getElementById(article.id)
    if (!existing) {
      lastPart.append(article)
      added++
    } else if (existing.textContent !== article.textContent) existing.replaceWith(article)
  }
  const nextLink = newPart.querySelector("a.more[rel=next]")
  if (nextLink) {
    lastPart.append(nextLink)
    lastPart.removeAttribute("data-last")
  }
  if (added > 0) announce(added === 1 ? "1 new message" : `${added} new messages`)
  if (wasAtEnd && added > 0) scrollTo({ top: document.documentElement.scrollHeight })
}

type Learning = { done: number; total: number; isLearning: boolean }

let latest: Learning | undefined

/** Shows the progress of learning. When learning is done, reloads the parts that were rendered before that. */
function showLearning(learning: Learning): void {
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
