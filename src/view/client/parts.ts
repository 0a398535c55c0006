import { partOf } from "./page.ts"

/** How far beyond the screen a part is asked for: nobody who scrolls sees its end. */
const AHEAD = "3000px"

/** The parts of a long conversation, or of a long file, before and after the one that is here come as one scrolls to them. */
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
    // The way back to where one came from is not needed: it is here.
    part.querySelector(`a.more[rel="${isBefore ? "next" : "prev"}"]`)?.remove()
    link.remove()
    if (isBefore) {
      // What is above grows: what one reads stays where it is.
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

/** The message that the address names is opened and shown; the line, where it is on another part, from there. */
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
