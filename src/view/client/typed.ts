import { base, partOf } from "./page.ts"

/** How long after the last key press the full search starts, in milliseconds. */
const PAUSE_MS = 150

/** Shows results while the person types: quick ones at once, and the ranked ones when they pause. */
export function rowsAsTyped(): void {
  const page = document.querySelector<HTMLElement>(".finding")
  const input = document.querySelector<HTMLInputElement>(".top .search input[name=q]")
  if (!page || !input) return
  let request = new AbortController()
  let pause: ReturnType<typeof setTimeout>
  input.addEventListener("input", () => {
    request.abort()
    clearTimeout(pause)
    delete page.dataset.live
    request = new AbortController()
    const { signal } = request
    const query = new URLSearchParams(location.search)
    query.set("q", input.value)
    query.delete("offset")
    let isRanked = false
    const show = async (how: "quick" | "part") => {
      const found = (await partOf(`${base}/find?${query}&${how}=1`, signal))?.querySelector(".finding")
      if (!found || signal.aborted || isRanked) return
      isRanked = how === "part"
      page.replaceChildren(...found.childNodes)
    }
    // Updates the address, so that it can be bookmarked.
    history.replaceState(null, "", `${base}/find?${query}`)
    void show("quick")
    pause = setTimeout(() => void show("part"), PAUSE_MS)
  })
  if (input.value === "" && matchMedia("(hover: hover)").matches) input.focus()
}
