import { showLearning } from "./learning.ts"
import { base, partOf, sayAloud } from "./page.ts"

/** An open page follows what agents write. The browser keeps the stream; nothing here has a timer. */
export function followChanges(): void {
  const stream = new EventSource(`${base}/changes`)
  // It would try again every few seconds, for as long as the page is open. Who comes back to the page tries once.
  stream.onerror = () => {
    stream.close()
    addEventListener("focus", followChanges, { once: true })
  }
  stream.onmessage = ({ data }) => {
    const refs = JSON.parse(data as string) as string[]
    const reading = document.querySelector<HTMLElement>(".reading")
    if (reading && refs.includes(reading.dataset.ref ?? "")) void addNewest(reading)
    for (const live of document.querySelectorAll<HTMLElement>("[data-live]")) void renew(live)
  }
  stream.addEventListener("learning", ({ data }) => showLearning(JSON.parse(data as string)))
  addEventListener("pagehide", () => stream.close(), { once: true })
}

/** A place of a page whose address gives it anew. */
async function renew(live: HTMLElement): Promise<void> {
  const fresh = (await partOf(live.dataset.live!))?.firstElementChild
  if (!fresh || fresh.innerHTML === live.innerHTML || live.dataset.live === undefined) return
  // Who stands on a row by keyboard stays on it.
  const address = live.querySelector(".row:focus a, .row a:focus")?.getAttribute("href")
  live.replaceChildren(...fresh.childNodes)
  if (address == null) return
  const same = [...live.querySelectorAll<HTMLElement>(".row")].find(
    (row) => row.querySelector("a")?.getAttribute("href") === address,
  )
  same?.focus({ preventScroll: true })
}

const NEAR_END = 200

/** The last part anew: what is as it was stays as it is, opened or closed. */
async function addNewest(reading: HTMLElement): Promise<void> {
  const last = reading.querySelector<HTMLElement>(".part[data-last]")
  if (!last) return // the end is not on the page
  const wasAtEnd = innerHeight + scrollY > document.documentElement.scrollHeight - NEAR_END
  const address = `${base}/c/${encodeURIComponent(reading.dataset.ref ?? "")}/part?from=${last.dataset.from}`
  const fresh = (await partOf(address))?.querySelector<HTMLElement>(".part")
  if (!fresh) return
  let added = 0
  for (const article of fresh.querySelectorAll("article")) {
    const known = document.getElementById(article.id)
    if (!known) {
      last.append(article)
      added++
    } else if (known.textContent !== article.textContent) known.replaceWith(article)
  }
  const more = fresh.querySelector("a.more[rel=next]")
  if (more) {
    last.append(more)
    last.removeAttribute("data-last")
  }
  if (added > 0) sayAloud(added === 1 ? "1 new message" : `${added} new messages`)
  if (wasAtEnd && added > 0) scrollTo({ top: document.documentElement.scrollHeight })
}
