import { type ComponentType, render } from "preact"

/** Opens a modal dialog. A click outside closes it. */
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
