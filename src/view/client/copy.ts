import { sayAloud } from "./page.ts"

/** A button with `data-copy` copies it, and says so in its own place. */
export function copyOnClick(): void {
  document.addEventListener("click", async ({ target }) => {
    const button = target instanceof Element ? target.closest<HTMLElement>("[data-copy]") : null
    const text = button?.dataset.copy
    if (!button || text === undefined) return
    const said = button.dataset.says ?? button.textContent ?? ""
    button.dataset.says = said
    const isDone = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    )
    button.textContent = isDone ? "Copied" : text
    sayAloud(isDone ? `Copied: ${text}` : text)
    button.addEventListener("blur", () => restore(button, said), { once: true })
    button.addEventListener("pointerleave", () => restore(button, said), { once: true })
  })
}

function restore(button: HTMLElement, said: string): void {
  button.textContent = said
}
