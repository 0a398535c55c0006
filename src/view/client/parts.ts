import { partOf } from "./page.ts"

/** How far ahead of the visible area a part is loaded, so that a person who scrolls does not have to wait. */
const AHEAD = "3000px"

/** Loads the previous and next parts of a long conversation or file while the person scrolls. */
export function readParts(): void {
  const messages = document.querySelector(".messages, .owned")
  if (!messages) return
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) void load(target as HTMLAnchorElement)
    },
    { rootMargin: AHEAD },
  )
  const load = async (link: HTMLAnchorElement) => {
    observer.unobserve(link)
    const address = link.dataset.part
    const own = link.closest(".part")
    if (address === undefined || !own) return
    const part = (await partOf(address))?.querySelector(".part")
    if (!part) return
    const isBefore = link.rel === "prev"
    // Removes the link to the part that is already on the page.
    part.querySelector(`a.more[rel="${isBefore ? "next" : "prev"}"]`)?.remove()
    link.remove()
    if (isBefore) {
      // Content was added above, so this scrolls to keep the text being read in place.
      const height = document.documentElement.scrollHeight
      own.before(part)
      if (scrollY < 4) scrollBy(0, document.documentElement.scrollHeight - height)
    } else own.after(part)
    watch(part)
  }
  const watch = (within: ParentNode) => {
    for (const link of within.querySelectorAll<HTMLAnchorElement>("a.more[data-part]")) observer.observe(link)
  }
  watch(messages)
  toNamed()
  addEventListener("hashchange", toNamed)
}

/** Scrolls to the message in the address. If the address names a line in another part, loads the page at that line. */
function toNamed(): void {
  const [, line] = /^#L(\d+)$/.exec(location.hash) ?? []
  const query = new URLSearchParams(location.search)
  if (line !== undefined && !document.getElementById(`L${line}`) && query.get("at") !== line) {
    query.set("at", line)
    location.replace(`${location.pathname}?${query}${location.hash}`)
  }
  const named = /^#m\d+$/.test(location.hash) ? document.querySelector(location.hash) : null
  if (!(named instanceof HTMLElement)) return
  named.scrollIntoView({ block: "start" })
  named.focus({ preventScroll: true })
}
