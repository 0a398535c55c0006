/** What a page says of itself. */
export function meta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="dex-${name}"]`)?.content ?? ""
}

export const base = meta("base")

/**
 * A part of a page, as the server renders it. Undefined: it cannot be had now. When the view has ended, another program may listen at
 * its port; what that one answers is never shown.
 */
export async function partOf(address: string, signal?: AbortSignal): Promise<DocumentFragment | undefined> {
  try {
    const answer = await fetch(address, signal ? { signal } : {})
    if (!answer.ok || answer.headers.get("X-Dex-Token") !== meta("token")) return undefined
    const template = document.createElement("template")
    template.innerHTML = await answer.text()
    return template.content
  } catch {
    return undefined // nobody waits for it any more, even if half of it has come; or the server has ended
  }
}

/** For whoever hears the page. */
export function sayAloud(text: string): void {
  const place = document.getElementById("said")
  if (place) place.textContent = text
}

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}
