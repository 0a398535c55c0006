import { type ComponentType, render } from "preact"

/** Something in front of the page, until it is closed. */
export function openDialog(label: string, Content: ComponentType<{ close(): void }>): void {
  const dialog = document.createElement("dialog")
  dialog.setAttribute("aria-label", label)
  document.body.append(dialog)
  const close = () => dialog.close()
  dialog.addEventListener("close", () => {
    render(null, dialog)
    dialog.remove()
  })
  dialog.addEventListener("click", ({ target }) => target === dialog && close())
  render(<Content close={close} />, dialog)
  dialog.showModal()
}
