import { showLatest } from "./learning.ts"
import { fetchPart } from "./page.ts"

/** Loads the slow sections one after the other. A section that cannot be loaded stays a link. */
export async function loadLate(): Promise<void> {
  for (const placeholder of document.querySelectorAll<HTMLElement>("[data-late]")) {
    const section = (await fetchPart(placeholder.dataset.late!))?.firstElementChild
    if (!section) continue
    placeholder.replaceWith(section)
    showLatest()
  }
}
