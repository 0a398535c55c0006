import { signal } from "@preact/signals"
import { openDialog } from "./dialog.tsx"
import { base, partOf } from "./page.ts"

type Choice = { title: string; says: string; address: string }

const PLACES: Choice[] = [
  { title: "Home", says: "what happened lately", address: `${base}/` },
  { title: "Find", says: "search everything", address: `${base}/find` },
  { title: "Usage", says: "tokens and money", address: `${base}/usage` },
]

/** Opens a dialog to go to a page, to a prompt of this conversation, or to a conversation found by its words. */
export function openPalette(): void {
  const words = signal("")
  const found = signal<Choice[]>([])
  const chosen = signal(0)
  let request = new AbortController()
  const type = async (text: string) => {
    words.value = text
    chosen.value = 0
    request.abort()
    request = new AbortController()
    if (text.trim().length < 2) {
      found.value = []
      return
    }
    const { signal: stopped } = request
    const choices = async (how: "quick" | "part") => {
      const rows = await partOf(`${base}/find?${new URLSearchParams({ q: text, [how]: "1" })}`, stopped)
      return [...(rows?.querySelectorAll<HTMLAnchorElement>(".row a.title") ?? [])].slice(0, 8).map(choiceOf)
    }
    // If the quick search finds nothing, runs the full search, which also corrects mistakes.
    const quick = await choices("quick")
    const rows = quick.length > 0 || stopped.aborted ? quick : await choices("part")
    if (!stopped.aborted) found.value = rows
  }
  openDialog("Go anywhere", ({ close }) => {
    const shown = [...nearby(words.value), ...found.value].slice(0, 12)
    const go = (choice: Choice | undefined) => {
      if (!choice) return
      close()
      location.assign(choice.address)
    }
    const onKeyDown = (event: KeyboardEvent) => {
      const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0
      if (by !== 0) {
        event.preventDefault()
        chosen.value = Math.max(0, Math.min(shown.length - 1, chosen.value + by))
      } else if (event.key === "Enter") go(shown[chosen.value] ?? searchFor(words.value))
    }
    return (
      <div class="palette">
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={shown.length > 0 ? `choice-${chosen.value}` : undefined}
          aria-label="Go anywhere"
          placeholder="A page, a prompt, or words to search for"
          autocomplete="off"
          spellcheck={false}
          value={words.value}
          onKeyDown={onKeyDown}
          onInput={({ currentTarget }) => void type(currentTarget.value)}
        />
        <div id="palette-list" role="listbox" aria-label="Places">
          {shown.map((choice, i) => (
            <div
              key={choice.address}
              id={`choice-${i}`}
              role="option"
              tabIndex={-1}
              aria-selected={i === chosen.value}
              onPointerDown={() => go(choice)}
            >
              <b>{choice.title}</b> <span>{choice.says}</span>
            </div>
          ))}
        </div>
      </div>
    )
  })
}

function searchFor(words: string): Choice | undefined {
  return words.trim() === ""
    ? undefined
    : { title: words, says: "", address: `${base}/find?${new URLSearchParams({ q: words })}` }
}

/** The pages, and the prompts of the open conversation. */
function nearby(words: string): Choice[] {
  const prompts = [...document.querySelectorAll<HTMLAnchorElement>(".outline a[data-number]")].map((link) => ({
    title: `#${link.dataset.number}`,
    says: link.textContent ?? "",
    address: link.href,
  }))
  const wanted = words.trim().toLowerCase()
  const isMeant = ({ title, says }: Choice) => `${title} ${says}`.toLowerCase().includes(wanted)
  return [...PLACES.filter(isMeant), ...(wanted === "" ? [] : prompts.filter(isMeant).slice(0, 5))]
}

function choiceOf(link: HTMLAnchorElement): Choice {
  const says = link.closest(".row")?.querySelector(".line")?.textContent ?? ""
  return { title: link.textContent ?? "", says, address: link.href }
}
