// The controls on a page that a person can press or fill in.

/**
 * The name of every control on the open page, each once: a form by its method, its path and the words on its button; a button
 * outside of a form by its words; anything that folds as `fold`. Parts that vary, such as addresses and rows, are left out.
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
