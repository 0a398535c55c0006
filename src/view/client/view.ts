import { openHelp } from "./help.tsx"
import { onKeys } from "./keys.ts"
import { followChanges, showLatest } from "./live.ts"
import { announce, fetchPart } from "./page.ts"
import { openPalette } from "./palette.tsx"
import { readParts } from "./parts.ts"
import { searchWhileTyping } from "./typed.ts"
import { findInConversation } from "./within.ts"

// Every page works without this script, which adds keys, search while typing and live updates.

copyOnClick()
showChartValues()
foldOutline()
readParts()
findInConversation()
searchWhileTyping()
followChanges()
void loadLate()
onKeys({ help: openHelp, palette: openPalette })

/** Folds the outline on a phone, on which it is above the conversation. The style sheet hides it until then. */
function foldOutline(): void {
  const outline = document.querySelector<HTMLDetailsElement>(".outline:not(.ready) details")
  if (!outline) return
  if (matchMedia("(max-width: 52rem)").matches) outline.open = false
  outline.closest(".outline")!.classList.add("ready")
}

/** Loads the slow sections one after the other. A section that cannot be loaded stays a link. */
async function loadLate(): Promise<void> {
  for (const placeholder of document.querySelectorAll<HTMLElement>("[data-late]")) {
    const part = await fetchPart(placeholder.dataset.late!)
    if (!part) continue
    // A section without content is left out.
    placeholder.replaceWith(...(part.firstElementChild ? [part.firstElementChild] : []))
    foldOutline()
    showLatest()
  }
}

/** Copies the text in a button's `data-copy` on a click. The label then confirms it, or shows the text if copying failed. */
function copyOnClick(): void {
  document.addEventListener("click", async ({ target }) => {
    const button = target instanceof Element ? target.closest<HTMLElement>("[data-copy]") : null
    const text = button?.dataset.copy
    if (!button || text === undefined) return
    const label = button.dataset.label ?? button.textContent ?? ""
    button.dataset.label = label
    const isCopied = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    )
    button.textContent = isCopied ? "Copied" : text
    announce(isCopied ? `Copied: ${text}` : text)
    button.addEventListener("blur", () => restoreLabel(button, label), { once: true })
    button.addEventListener("pointerleave", () => restoreLabel(button, label), { once: true })
  })
}

function restoreLabel(button: HTMLElement, label: string): void {
  button.textContent = label
}

/** Shows the value of a chart's bar next to it, for the pointer, the focus and the arrow keys. */
function showChartValues(): void {
  const valueAt = (target: EventTarget | null) =>
    target instanceof Element ? target.closest<SVGElement>(".chart [data-value]") : null
  for (const type of ["pointerover", "focusin"])
    addEventListener(type, ({ target }) => {
      // A chart whose bars are not links is focused as one. Its bars are then chosen with the arrow keys.
      if (type === "focusin" && target instanceof SVGSVGElement && target.matches(".chart svg"))
        return choose(target, 0)
      const bar = valueAt(target)
      if (bar) showValue(bar)
    })
  addEventListener("keydown", (event) => {
    const { key, target } = event
    const distance = { ArrowLeft: -1, ArrowRight: 1, Home: Number.NEGATIVE_INFINITY, End: Number.POSITIVE_INFINITY }[
      key
    ]
    if (distance === undefined || !(target instanceof SVGSVGElement) || !target.matches(".chart svg")) return
    event.preventDefault()
    choose(target, distance)
  })
}

function showValue(bar: SVGElement): void {
  const value = bar.closest(".chart")?.querySelector(".value")
  if (value) value.textContent = bar.dataset.value ?? ""
}

/** Chooses a bar at this distance from the chosen one, which is the last one at the beginning. */
function choose(chart: SVGSVGElement, distance: number): void {
  const bars = [...chart.querySelectorAll<SVGElement>("[data-value]")]
  const chosen = chart.querySelector<SVGElement>(".current")
  const from = chosen ? bars.indexOf(chosen) : bars.length - 1
  const bar = bars[Math.max(0, Math.min(bars.length - 1, from + distance))]
  if (!bar) return
  chosen?.classList.remove("current")
  bar.classList.add("current")
  showValue(bar)
}
