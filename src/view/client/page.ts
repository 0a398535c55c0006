/** A value that the server put into the page. */
export function meta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="dex-${name}"]`)?.content ?? ""
}

export const base = meta("base")

/**
 * A part of a page, as the server renders it. Undefined if it is not available. After the view has ended, another program may
 * listen on its port; that program's answers are never shown.
 */
export async function fetchPart(address: string, signal?: AbortSignal): Promise<DocumentFragment | undefined> {
  try {
    const response = await fetch(address, signal ? { signal } : {})
    if (!response.ok || response.headers.get("X-Dex-Token") !== meta("token")) return undefined
    const template = document.createElement("template")
    template.innerHTML = await response.text()
    return template.content
  } catch {
    return undefined // the request was cancelled, or the server has ended
  }
}

/** Announces a text to screen readers. */
export function announce(text: string): void {
  const element = document.getElementById("announcement")
  if (element) element.textContent = text
}

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}
