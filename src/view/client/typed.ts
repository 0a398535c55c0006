import { base, partOf } from "./page.ts"

/** After so long without a key the words are searched for in earnest. */
const PAUSE_MS = 150

/** On the page of a search, rows come as one types: at once what is quickly found, and in their order once one pauses. */
export function rowsAsTyped(): void {
  const page = document.querySelector<HTMLElement>(".finding")
  const input = document.querySelector<HTMLInputElement>(".top .search input[name=q]")
  if (!page || !input) return
  let asked = new AbortController()
  let pause: ReturnType<typeof setTimeout>
  input.addEventListener("input", () => {
    asked.abort()
    clearTimeout(pause)
    delete page.dataset.live
    asked = new AbortController()
    const { signal } = asked
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
    // The address follows, so that it can be kept.
    history.replaceState(null, "", `${base}/find?${query}`)
    void show("quick")
    pause = setTimeout(() => void show("part"), PAUSE_MS)
  })
  if (input.value === "" && matchMedia("(hover: hover)").matches) input.focus()
}
