import { signal } from "@preact/signals"
import { openDialog } from "./dialog.tsx"
import { base, fetchPart } from "./page.ts"

type Choice = { title: string; description: string; date?: string; address: string }

const PLACES: Choice[] = [
  { title: "Home", description: "what happened lately", address: `${base}/` },
  { title: "Find", description: "search everything", address: `${base}/find` },
  { title: "Usage", description: "tokens and money", address: `${base}/usage` },
]

/** Opens a dialog to go to a page, to a prompt of this conversation, or to a conversation found by its words. */
export function openPalette(): void {
  const words = signal("")
  const results = signal<Choice[]>([])
  const selected = signal(0)
  let request = new AbortController()
  const search = async (text: string) => {
    words.value = text
    selected.value = 0
    request.abort()
    request = new AbortController()
    if (text.trim().length < 2) {
      results.value = []
      return
    }
    const { signal: abortSignal } = request
    const choices = async (mode: "quick" | "part") => {
      const rows = await fetchPart(`${base}/find?${new URLSearchParams({ q: text, [mode]: "1" })}`, abortSignal)
      return [...(rows?.querySelectorAll<HTMLAnchorElement>(".row a.title") ?? [])].slice(0, 8).map(choiceOf)
    }
    // If the quick search finds nothing, runs the full search, which also corrects mistakes.
    const quickChoices = await choices("quick")
    const rows = quickChoices.length > 0 || abortSignal.aborted ? quickChoices : await choices("part")
    if (!abortSignal.aborted) results.value = rows
  }
  openDialog("Go anywhere", ({ close }) => {
    const visibleChoices = [...pageChoices(words.value), ...results.value].slice(0, 12)
    const openChoice = (choice: Choice | undefined) => {
      if (!choice) return
      close()
      location.assign(choice.address)
    }
    const onKeyDown = (event: KeyboardEvent) => {
      const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0
      if (step !== 0) {
        event.preventDefault()
        selected.value = Math.max(0, Math.min(visibleChoices.length - 1, selected.value + step))
      } else if (event.key === "Enter") openChoice(visibleChoices[selected.value] ?? searchFor(words.value))
    }
    return (
      <div class="palette">
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={visibleChoices.length > 0 ? `choice-${selected.value}` : undefined}
          aria-label="Go anywhere"
          placeholder="A page, a prompt, or words to search for"
          autocomplete="off"
          spellcheck={false}
          value={words.value}
          onKeyDown={onKeyDown}
          onInput={({ currentTarget }) => void search(currentTarget.value)}
        />
        <div id="palette-list" role="listbox" aria-label="Places">
          {visibleChoices.map((choice, i) => (
            <div
              key={choice.address}
              id={`choice-${i}`}
              role="option"
              tabIndex={-1}
              aria-selected={i === selected.value}
              onPointerDown={() => openChoice(choice)}
            >
              <b>{choice.title}</b> <span>{choice.description}</span>
              {choice.date && [" ", <span key="date">{choice.date}</span>]}
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
    : { title: words, description: "", address: `${base}/find?${new URLSearchParams({ q: words })}` }
}

/** The pages and the prompts of the open conversation that contain these words. */
function pageChoices(words: string): Choice[] {
  const prompts = [...document.querySelectorAll<HTMLAnchorElement>(".outline a[data-number]")].map((link) => ({
    title: link.textContent ?? "",
    description: `prompt #${link.dataset.number}`,
    address: link.href,
  }))
  const needle = words.trim().toLowerCase()
  const isMatch = ({ title, description }: Choice) => `${title} ${description}`.toLowerCase().includes(needle)
  return [...PLACES.filter(isMatch), ...(needle === "" ? [] : prompts.filter(isMatch).slice(0, 5))]
}

function choiceOf(link: HTMLAnchorElement): Choice {
  const row = link.closest(".row")
  const description = row?.querySelector(".line > [title]")?.textContent ?? ""
  const date = row?.querySelector("time")?.textContent ?? ""
  return { title: link.textContent ?? "", description, date, address: link.href }
}
