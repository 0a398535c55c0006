// What a person can press or fill in on a page, as the browser has it.

/**
 * The name of every control on the open page, each once: a form by its method, its path and the words on its button; a button
 * outside of a form by its words; anything that folds as `fold`. What is in an address or differs from row to row is left out.
 */
export const CONTROLS = `(() => {
  const base = document.querySelector("meta[name=dex-base]").content
  const pathOf = (form) => new URL(form.action).pathname.slice(base.length).replace(/^\\/c\\/[^/]+/, "/c/:ref")
  const names = [...document.querySelectorAll("form, button, summary, input, select, textarea, [role=button], [onclick]")].map((one) => {
    if (one.matches("summary")) return "fold"
    const form = one.closest("form")
    if (!form) return one.tagName.toLowerCase() + ": " + one.textContent.trim()
    const button = form.querySelector("button")
    return form.method + " " + pathOf(form) + (button ? ": " + button.textContent.trim() : "")
  })
  return [...new Set(names)]
})()`
