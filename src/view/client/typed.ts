import { base, fetchPart } from "./page.ts"

/** How long after the last key press the full search starts, in milliseconds. */
const PAUSE_MS = 150

/** Shows results while the person types: quick ones at once, and the ranked ones when they pause. */
export function searchWhileTyping(): void {
  const page = document.querySelector<HTMLElement>(".finding")
  const input = document.querySelector<HTMLInputElement>(".top .search input[name=q]")
  if (!page || !input) return
  let request = new AbortController()
  let pauseTimer: ReturnType<typeof setTimeout>
  input.addEventListener("input", () => {
    request.abort()
    clearTimeout(pauseTimer)
    delete page.dataset.live
    request = new AbortController()
    const { signal } = request
    const query = new URLSearchParams(location.search)
    query.set("q", input.value)
    query.delete("offset")
    let isRanked = false
    const show = async (mode: "quick" | "part") => {
      const results = (await fetchPart(`${base}/find?${query}&${mode}=1`, signal))?.querySelector(".finding")
      if (!results || signal.aborted || isRanked) return
      isRanked = mode === "part"
      // The filters at the side follow when the person pauses.
      if (mode === "part") page.replaceChildren(...results.childNodes)
      else page.querySelector(".results")?.replaceWith(...results.childNodes)
    }
    // Updates the address, so that it can be bookmarked.
    history.replaceState(null, "", `${base}/find?${query}`)
    void show("quick")
    pauseTimer = setTimeout(() => void show("part"), PAUSE_MS)
  })
  if (input.value === "" && matchMedia("(hover: hover)").matches) input.focus()
}
