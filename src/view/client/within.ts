import { wordsPattern } from "../../core/words.ts"
import { base, fetchPart } from "./page.ts"
import { showPart } from "./parts.ts"

/** A message with matches, as the server counts them, and the part that contains it. */
type FoundMessage = { number: string; count: number; index: number; from: string }

const MIN_CHARS = 2
/** Elements whose text is read as one. Words that continue in the next one are not a match. */
const BLOCKS =
  "p, li, pre, td, th, dt, dd, ins, del, div, summary, header, blockquote, span.what, span.tool, span.outcome, span.facts, a"

let step: (direction: 1 | -1) => boolean = () => false
let stop: () => void = () => {}

/** Goes to the next or previous match. False if nothing is being looked for. */
export function stepMatch(direction: 1 | -1): boolean {
  return step(direction)
}

/** Removes the marks. */
export function stopFinding(): void {
  stop()
}

/**
 * Finds words in the complete conversation: marks all matches on the page, and goes from one to the next without leaving it. The
 * server says which messages contain the words, so that parts that are not on the page are found too.
 */
export function findInConversation(): void {
  const conversation = document.querySelector<HTMLElement>(".reading")
  const messages = conversation?.querySelector<HTMLElement>(".messages")
  const form = conversation?.querySelector<HTMLFormElement>("form.within")
  const input = form?.querySelector("input")
  if (!conversation || !messages || !form || !input || !("highlights" in CSS)) return
  const result = document.createElement("output")
  const buttons = [["↑", "Previous match", -1] as const, ["↓", "Next match", 1] as const].map(
    ([label, title, direction]) => {
      const button = document.createElement("button")
      Object.assign(button, { type: "button", textContent: label, title, ariaLabel: title })
      button.addEventListener("click", () => void go(direction))
      return button
    },
  )
  const controls = document.createElement("span")
  controls.append(result, ...buttons)

  let words = ""
  let found: FoundMessage[] = []
  let ranges: Range[] = []
  let current = -1
  let request = new AbortController()
  let search: Promise<void> = Promise.resolve()

  const partIndexes = () =>
    [...messages.querySelectorAll<HTMLElement>(".part")].map((part) => Number(part.dataset.index))
  const countIn = (items: FoundMessage[]) => items.reduce((sum, { count }) => sum + count, 0)
  const isFinding = () => words.length >= MIN_CHARS

  /** Marks the matches on the page, and says which one is the current one. */
  const show = () => {
    const indexes = partIndexes()
    const earlier = countIn(found.filter(({ index }) => index < indexes[0]!))
    const later = countIn(found.filter(({ index }) => index > indexes.at(-1)!))
    const total = earlier + ranges.length + later
    // Other parts are counted in the text, which may differ a little from what their pages show.
    const totalText = `${earlier + later > 0 ? "about " : ""}${total}`
    CSS.highlights.set("match", new Highlight(...ranges))
    CSS.highlights.set("current-match", new Highlight(...ranges.slice(current, current < 0 ? 0 : current + 1)))
    result.textContent =
      total === 0 ? "No matches" : current < 0 ? `${totalText} matches` : `${earlier + current + 1} of ${totalText}`
    if (!isFinding()) controls.remove()
    else if (!controls.isConnected) form.append(controls)
    form.classList.toggle("finding-words", isFinding())
  }

  const start = async () => {
    request.abort()
    request = new AbortController()
    const { signal } = request
    words = input.value.trim()
    current = -1
    if (!isFinding()) {
      found = []
      ranges = []
      return show()
    }
    const query = new URLSearchParams({ q: words, part: "1" })
    const items = await fetchPart(`${form.action}?${query}`, signal)
    if (!items || signal.aborted) return
    found = [...items.querySelectorAll("li")].map(({ dataset }) => ({
      number: dataset.number!,
      count: Number(dataset.count),
      index: Number(dataset.index),
      from: dataset.from!,
    }))
    ranges = rangesIn(messages, words, found)
    show()
  }

  /** The first match below the top of the screen, or the last one above it. */
  const nearest = (direction: 1 | -1) => {
    const isBelow = (range: Range) => boxOf(range).getBoundingClientRect().top > form.getBoundingClientRect().bottom
    if (direction === 1) return ranges.findIndex(isBelow)
    const below = ranges.findIndex(isBelow)
    return below === -1 ? ranges.length - 1 : below - 1
  }

  const go = async (direction: 1 | -1) => {
    if (input.value.trim() !== words) search = start()
    await search
    if (!isFinding() || found.length === 0) return
    const next = current < 0 ? nearest(direction) : current + direction
    if (next >= 0 && next < ranges.length) current = next
    else if (!(await goToPart(direction))) return
    show()
    reveal(ranges[current]!, form)
  }

  /** Shows the next part with matches, and after the last one the first. False if no match can be shown. */
  const goToPart = async (direction: 1 | -1): Promise<boolean> => {
    const indexes = partIndexes()
    const candidates =
      direction === 1
        ? [...found.filter(({ index }) => index > indexes.at(-1)!), ...found]
        : [...found.filter(({ index }) => index < indexes[0]!).reverse(), ...found.toReversed()]
    const tried = new Set<number>()
    for (const { index, from } of candidates) {
      if (tried.has(index)) continue
      tried.add(index)
      if (!partIndexes().includes(index)) {
        const address = `${base}/c/${encodeURIComponent(conversation.dataset.ref ?? "")}/part?from=${from}`
        const part = (await fetchPart(address))?.querySelector<HTMLElement>(".part")
        if (!part) return false
        showPart(part)
        history.replaceState(null, "", `?from=${from}`)
        ranges = rangesIn(messages, words, found)
      }
      const inPart = ranges.flatMap((range, i) =>
        boxOf(range).closest<HTMLElement>(".part")?.dataset.index === String(index) ? [i] : [],
      )
      const first = direction === 1 ? inPart[0] : inPart.at(-1)
      if (first === undefined) continue
      current = first
      return true
    }
    return false
  }

  step = (direction) => {
    if (!isFinding()) return false
    void go(direction)
    return true
  }
  stop = () => {
    input.value = ""
    search = start()
  }
  input.addEventListener("input", () => {
    search = start()
  })
  form.addEventListener("submit", (event) => event.preventDefault())
  input.addEventListener("keydown", (event) => {
    // Escape leaves the field, but the browser would also empty it, and the keys for the next match would be lost.
    if (event.key === "Escape") event.preventDefault()
    if (event.key !== "Enter" || event.isComposing) return
    event.preventDefault()
    void go(event.shiftKey ? -1 : 1)
  })
  // Parts are loaded while the person scrolls, and an agent may be writing.
  new MutationObserver(() => {
    if (!isFinding()) return
    const kept = ranges[current]
    ranges = rangesIn(messages, words, found)
    current = kept
      ? ranges.findIndex(
          ({ startContainer, startOffset }) =>
            startContainer === kept.startContainer && startOffset === kept.startOffset,
        )
      : -1
    show()
  }).observe(messages, { childList: true, subtree: true })
}

function boxOf(range: Range): Element {
  const { startContainer } = range
  return startContainer instanceof Element ? startContainer : startContainer.parentElement!
}

/** Opens what is folded around a match, and scrolls to it. */
function reveal(range: Range, form: HTMLElement): void {
  const box = boxOf(range)
  for (let fold = box.closest("details"); fold; fold = fold.parentElement?.closest("details") ?? null) fold.open = true
  box.scrollIntoView({ block: "center" })
  // An element may be larger than the screen.
  const { top, bottom } = range.getBoundingClientRect()
  const covered = form.getBoundingClientRect().bottom
  if (top < covered || bottom > innerHeight) scrollBy(0, top - (covered + innerHeight) / 2)
}

/**
 * The matches in the messages on the page, in their order. In a message whose matches are in text that is not on the page, the
 * link to that text.
 */
function rangesIn(messages: HTMLElement, words: string, found: readonly FoundMessage[]): Range[] {
  const pattern = wordsPattern(words)
  const numbers = new Set(found.map(({ number }) => number))
  return [...messages.querySelectorAll<HTMLElement>("article")].flatMap((article) => {
    const ranges = matchesIn(article, pattern)
    if (ranges.length > 0 || !numbers.has(article.id.slice(1))) return ranges
    const rest = article.querySelector("a.rest")
    if (!rest) return []
    const range = document.createRange()
    range.selectNodeContents(rest)
    return [range]
  })
}

function matchesIn(article: HTMLElement, pattern: RegExp): Range[] {
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT)
  const nodes: { node: Node; start: number }[] = []
  let text = ""
  let lastBlock: Element | null = null
  while (walker.nextNode()) {
    const node = walker.currentNode
    const parent = node.parentElement!
    // Side by side, an unchanged line is on both sides.
    if (parent.closest(".was, .ways")) continue
    const block = parent.closest(BLOCKS)
    if (block !== lastBlock) text += "\0"
    lastBlock = block
    nodes.push({ node, start: text.length })
    text += node.nodeValue ?? ""
  }
  let at = 0
  return Array.from(text.matchAll(pattern), ({ 0: { length }, index }) => {
    const range = document.createRange()
    while (at + 1 < nodes.length && nodes[at + 1]!.start <= index) at++
    range.setStart(nodes[at]!.node, index - nodes[at]!.start)
    let last = at
    while (last + 1 < nodes.length && nodes[last + 1]!.start < index + length) last++
    range.setEnd(nodes[last]!.node, index + length - nodes[last]!.start)
    return range
  })
}
