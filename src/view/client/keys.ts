import { isTyping } from "./page.ts"

type Opens = { help(): void; palette(): void }

/** Handles the page's keyboard shortcuts. */
export function onKeys({ help, palette }: Opens): void {
  addEventListener("keydown", (event) => {
    const { key, target } = event
    if ((event.metaKey || event.ctrlKey) && key.toLowerCase() === "k") {
      event.preventDefault()
      return palette()
    }
    if (key === "Escape" && isTyping(target)) return (target as HTMLElement).blur()
    if (event.metaKey || event.ctrlKey || event.altKey || isTyping(target)) return
    if (document.querySelector("dialog[open]")) return
    const act = KEYS[key] ?? (key === "?" ? help : undefined)
    if (!act) return
    event.preventDefault()
    act()
  })
}

const KEYS: Record<string, () => void> = {
  j: () => move(".message, .row", 1),
  k: () => move(".message, .row", -1),
  n: () => move(".message.person", 1),
  p: () => move(".message.person", -1),
  e: toggleAll,
  x: () => document.querySelector<HTMLElement>('.tools a[href$="export.html"]')?.click(),
  u: () => history.back(),
  "/": () => {
    const field = ["form.within input", ".top .search input"]
      .map((one) => document.querySelector<HTMLInputElement>(one))
      .find((one) => one !== null)
    field?.focus()
    field?.select()
  },
  Enter: () => document.activeElement?.querySelector<HTMLElement>("a")?.click(),
}

/** Moves to the next or previous element, counted from the focused one or from the top of the screen. */
function move(what: string, by: 1 | -1): void {
  const all = [...document.querySelectorAll<HTMLElement>(what)]
  const current = all.indexOf(document.activeElement?.closest<HTMLElement>(what) as HTMLElement)
  const top = 70
  const next =
    current >= 0
      ? all[current + by]
      : by === 1
        ? all.find((one) => one.getBoundingClientRect().top > top)
        : all.findLast((one) => one.getBoundingClientRect().top < top - 10)
  if (!next) return
  next.focus({ preventScroll: true })
  next.scrollIntoView({ block: next.matches(".row") ? "nearest" : "start" })
}

/** Opens all calls and outputs on the page, or closes them if all are open. */
function toggleAll(): void {
  const all = [...document.querySelectorAll<HTMLDetailsElement>(".messages details")]
  const isAnyClosed = all.some((one) => !one.open)
  for (const one of all) one.open = isAnyClosed
}
