import { announce } from "./page.ts"

/** A button with `data-copy` copies that text, and its label confirms it. */
export function copyOnClick(): void {
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
