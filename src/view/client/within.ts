import { fetchPart } from "./page.ts"

/**
 * Searches the complete conversation while the person types. The server searches, so parts that are not on the page are found
 * too.
 */
export function findInConversation(): void {
  const form = document.querySelector<HTMLFormElement>(".conversation form.within")
  const input = form?.querySelector("input")
  if (!form || !input) return
  const results = document.createElement("div")
  form.after(results)
  let request = new AbortController()
  input.addEventListener("input", async () => {
    request.abort()
    request = new AbortController()
    const words = input.value.trim()
    if (words.length < 2) return results.replaceChildren()
    const query = new URLSearchParams({ q: words, part: "1" })
    const matches = await fetchPart(`${form.action}?${query}`, request.signal)
    if (matches) results.replaceChildren(matches)
  })
  results.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest<HTMLElement>("a[data-number]") : null
    const message = link && document.getElementById(`m${link.dataset.number}`)
    if (!message) return // the message is in another part, and the link goes there
    event.preventDefault()
    history.pushState(null, "", `#${message.id}`)
    for (const folded of message.querySelectorAll("details")) folded.open = true
    message.scrollIntoView({ block: "start" })
    message.focus({ preventScroll: true })
  })
}
