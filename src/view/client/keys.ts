import { isTyping } from "./page.ts"
import { stepMatch, stopFinding } from "./within.ts"

type ShortcutActions = { help(): void; palette(): void }

/** Handles the page's keyboard shortcuts. */
export function onKeys({ help, palette }: ShortcutActions): void {
  addEventListener("keydown", (event) => {
    const { key, target } = event
    if ((event.metaKey || event.ctrlKey) && key.toLowerCase() === "k") {
      event.preventDefault()
      return palette()
    }
    if (key === "Escape" && isTyping(target)) return (target as HTMLElement).blur()
    if (event.metaKey || event.ctrlKey || event.altKey || isTyping(target)) return
    if (document.querySelector("dialog[open]")) return
    // Everywhere else, Enter follows a link or presses a button.
    const row = key === "Enter" && target instanceof Element && target.matches(".row") && target.querySelector("a")
    const action = row ? () => row.click() : (KEYS[key] ?? (key === "?" ? help : undefined))
    if (!action) return
    event.preventDefault()
    action()
  })
}

const KEYS: Record<string, () => unknown> = {
  j: () => moveFocus(".message, .row", 1),
  k: () => moveFocus(".message, .row", -1),
  n: () => stepMatch(1) || moveFocus(".message.person", 1),
  N: () => stepMatch(-1),
  p: () => moveFocus(".message.person", -1),
  c: () => moveFocus("[data-change]", 1),
  C: () => moveFocus("[data-change]", -1),
  e: toggleAll,
  x: () => document.querySelector<HTMLElement>('.tools a[href$="export.html"]')?.click(),
  u: () => history.back(),
  "/": () => {
    const field = ["form.within input", ".top .search input"]
      .map((selector) => document.querySelector<HTMLInputElement>(selector))
      .find((found) => found !== null)
    field?.focus()
    field?.select()
  },
  Escape: stopFinding,
}

/** Moves to the next or previous element, counted from the focused one or from the top of the screen. */
function moveFocus(selector: string, step: 1 | -1): void {
  const elements = [...document.querySelectorAll<HTMLElement>(selector)].filter((element) => element.checkVisibility())
  const current = elements.indexOf(document.activeElement?.closest<HTMLElement>(selector) as HTMLElement)
  const headerHeight = 70
  const next =
    current >= 0
      ? elements[current + step]
      : step === 1
        ? elements.find((element) => element.getBoundingClientRect().top > headerHeight)
        : elements.findLast((element) => element.getBoundingClientRect().top < headerHeight - 10)
  if (!next) return
  next.focus({ preventScroll: true })
  next.scrollIntoView({ block: next.matches(".row") ? "nearest" : next.matches("[data-change]") ? "center" : "start" })
}

/** Opens all calls and outputs on the page, or closes them if all are open. */
function toggleAll(): void {
  const calls = [...document.querySelectorAll<HTMLDetailsElement>(".messages details")]
  const isAnyClosed = calls.some((call) => !call.open)
  for (const call of calls) call.open = isAnyClosed
}
