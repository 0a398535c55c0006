import { fetchPart } from "./page.ts"

/** How far ahead of the visible area a part is loaded, so that a person who scrolls does not have to wait. */
const PRELOAD_MARGIN = "3000px"

let observer: IntersectionObserver | undefined

/** Loads the previous and next parts of a long conversation or file while the person scrolls. */
export function readParts(): void {
  const messages = document.querySelector(".messages, .owned")
  if (!messages) return
  observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) void loadPart(target as HTMLAnchorElement)
    },
    { rootMargin: PRELOAD_MARGIN },
  )
  observeLinks(messages)
  scrollToTarget()
  addEventListener("hashchange", scrollToTarget)
}

/** Shows one part of the conversation instead of those on the page. */
export function showPart(part: HTMLElement): void {
  const messages = document.querySelector(".messages")
  if (!messages) return
  for (const link of messages.querySelectorAll("a.more")) observer?.unobserve(link)
  messages.replaceChildren(part)
  observeLinks(part)
}

async function loadPart(link: HTMLAnchorElement): Promise<void> {
  observer?.unobserve(link)
  const address = link.dataset.part
  const currentPart = link.closest(".part")
  if (address === undefined || !currentPart) return
  const part = (await fetchPart(address))?.querySelector(".part")
  if (!part || !currentPart.isConnected) return
  const isBefore = link.rel === "prev"
  // Removes the link to the part that is already on the page.
  part.querySelector(`a.more[rel="${isBefore ? "next" : "prev"}"]`)?.remove()
  link.remove()
  if (isBefore) {
    // Content was added above, so this scrolls to keep the text being read in place.
    const height = document.documentElement.scrollHeight
    currentPart.before(part)
    if (scrollY < 4) scrollBy(0, document.documentElement.scrollHeight - height)
  } else currentPart.after(part)
  observeLinks(part)
}

function observeLinks(root: ParentNode): void {
  for (const link of root.querySelectorAll<HTMLAnchorElement>("a.more[data-part]")) observer?.observe(link)
}

/** Scrolls to the message in the address. If the address names a line in another part, loads the page at that line. */
function scrollToTarget(): void {
  const [, line] = /^#L(\d+)$/.exec(location.hash) ?? []
  const query = new URLSearchParams(location.search)
  if (line !== undefined && !document.getElementById(`L${line}`) && query.get("at") !== line) {
    query.set("at", line)
    location.replace(`${location.pathname}?${query}${location.hash}`)
  }
  const target = /^#m\d+$/.test(location.hash) ? document.querySelector(location.hash) : null
  if (!(target instanceof HTMLElement)) return
  target.scrollIntoView({ block: "start" })
  target.focus({ preventScroll: true })
}
