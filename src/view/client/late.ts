import { showLatest } from "./learning.ts"
import { partOf } from "./page.ts"

/** Loads the slow sections one after the other. A section that cannot be loaded stays a link. */
export async function loadLate(): Promise<void> {
  for (const late of document.querySelectorAll<HTMLElement>("[data-late]")) {
    const section = (await partOf(late.dataset.late!))?.firstElementChild
    if (!section) continue
    late.replaceWith(section)
    showLatest()
  }
}
