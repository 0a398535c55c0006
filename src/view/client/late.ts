import { showLatest } from "./learning.ts"
import { partOf } from "./page.ts"

/** What takes longer comes when the page is there, one after the other. What does not come stays a link. */
export async function loadLate(): Promise<void> {
  for (const late of document.querySelectorAll<HTMLElement>("[data-late]")) {
    const section = (await partOf(late.dataset.late!))?.firstElementChild
    if (!section) continue
    late.replaceWith(section)
    showLatest()
  }
}
