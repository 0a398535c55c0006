import { partOf } from "./page.ts"

/** Finds in the whole conversation as one types: the server looks, whatever of it is on the page. */
export function findInConversation(): void {
  const form = document.querySelector<HTMLFormElement>(".conversation form.within")
  const input = form?.querySelector("input")
  if (!form || !input) return
  const results = document.createElement("div")
  form.after(results)
  let asked = new AbortController()
  input.addEventListener("input", async () => {
    asked.abort()
    asked = new AbortController()
    const words = input.value.trim()
    if (words.length < 2) return results.replaceChildren()
    const query = new URLSearchParams({ q: words, part: "1" })
    const found = await partOf(`${form.action}?${query}`, asked.signal)
    if (found) results.replaceChildren(found)
  })
  results.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest<HTMLElement>("a[data-number]") : null
    const message = link && document.getElementById(`m${link.dataset.number}`)
    if (!message) return // it is on another part: the link leads there
    event.preventDefault()
    history.pushState(null, "", `#${message.id}`)
    for (const folded of message.querySelectorAll("details")) folded.open = true
    message.scrollIntoView({ block: "start" })
    message.focus({ preventScroll: true })
  })
}
