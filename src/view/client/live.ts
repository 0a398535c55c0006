import { showLearning } from "./learning.ts"
import { announce, base, partOf } from "./page.ts"

/** Updates an open page while agents write. The browser keeps the stream open, so there are no timers here. */
export function followChanges(): void {
  const stream = new EventSource(`${base}/changes`)
  // Otherwise the browser would retry every few seconds while the page is open. This way it retries when the page gets the focus.
  stream.onerror = () => {
    stream.close()
    addEventListener("focus", followChanges, { once: true })
  }
  stream.onmessage = ({ data }) => {
    const refs = JSON.parse(data as string) as string[]
    const reading = document.querySelector<HTMLElement>(".reading")
    if (reading && refs.includes(reading.dataset.ref ?? "")) void addNewest(reading)
    for (const live of document.querySelectorAll<HTMLElement>("[data-live]")) void reloadPart(live)
  }
  stream.addEventListener("learning", ({ data }) => showLearning(JSON.parse(data as string)))
  addEventListener("pagehide", () => stream.close(), { once: true })
}

/** Reloads a part of the page from its address. */
async function reloadPart(live: HTMLElement): Promise<void> {
  const fresh = (await partOf(live.dataset.live!))?.firstElementChild
  if (!fresh || fresh.innerHTML === live.innerHTML || live.dataset.live === undefined) return
  // Keeps the focus on the same row.
  const address = live.querySelector(".row:focus a, .row a:focus")?.getAttribute("href")
  live.replaceChildren(...fresh.childNodes)
  if (address == null) return
  const same = [...live.querySelectorAll<HTMLElement>(".row")].find(
    (row) => row.querySelector("a")?.getAttribute("href") === address,
  )
  same?.focus({ preventScroll: true })
}

const NEAR_END = 200

/** Reloads the last part of the conversation. Messages that have not changed stay as they are, open or closed. */
async function addNewest(reading: HTMLElement): Promise<void> {
  const last = reading.querySelector<HTMLElement>(".part[data-last]")
  if (!last) return // the end is not on the page
  const wasAtEnd = innerHeight + scrollY > document.documentElement.scrollHeight - NEAR_END
  const address = `${base}/c/${encodeURIComponent(reading.dataset.ref ?? "")}/part?from=${last.dataset.from}`
  const fresh = (await partOf(address))?.querySelector<HTMLElement>(".part")
  if (!fresh) return
  let added = 0
  for (const article of fresh.querySelectorAll("article")) {
    const shown = document.getElementById(article.id)
    if (!shown) {
      last.append(article)
      added++
    } else if (shown.textContent !== article.textContent) shown.replaceWith(article)
  }
  const more = fresh.querySelector("a.more[rel=next]")
  if (more) {
    last.append(more)
    last.removeAttribute("data-last")
  }
  if (added > 0) announce(added === 1 ? "1 new message" : `${added} new messages`)
  if (wasAtEnd && added > 0) scrollTo({ top: document.documentElement.scrollHeight })
}
