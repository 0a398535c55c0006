/** A run of a user record's text: typed by the person, or put there by the agent, a hook, a skill or a command. */
export type TextRun = { text: string; injected: boolean }

/**
 * Splits text at whole `<tag …>…</tag>` blocks, which agents use to put their own words into the user's turn. An
 * unclosed tag is the person's text: people do type angle brackets. Linear in the text, whatever it holds.
 */
export function splitInjected(text: string, tags: readonly string[]): TextRun[] {
  const runs: TextRun[] = []
  const exhausted = new Set<string>()
  let from = 0
  for (let open = text.indexOf("<"); open !== -1; open = text.indexOf("<", open + 1)) {
    const tag = tags.find((name) => startsTag(text, open, name))
    if (!tag || exhausted.has(tag)) continue
    const closing = `</${tag}>`
    const close = text.indexOf(closing, open)
    if (close === -1) {
      exhausted.add(tag)
      continue
    }
    const end = close + closing.length
    push(runs, text.slice(from, open), false)
    push(runs, text.slice(open, end), true)
    from = end
    open = end - 1
  }
  push(runs, text.slice(from), false)
  return runs
}

function startsTag(text: string, at: number, name: string): boolean {
  if (!text.startsWith(name, at + 1)) return false
  const next = text[at + 1 + name.length]
  return next === ">" || next === " " || next === "\n"
}

function push(runs: TextRun[], text: string, injected: boolean): void {
  const trimmed = text.trim()
  if (trimmed !== "") runs.push({ text: trimmed, injected })
}
