import { localMinute } from "../../core/dates.ts"
import { formatCount } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many } from "../../render/words.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import { conversationOf } from "../../tools/fields.ts"
import { lineChart } from "../charts.ts"
import type { Addresses } from "../page.ts"
import type { Subagents } from "./nearby.ts"
import type { ConversationShape, Mark } from "./shape.ts"

const MAX_FILES = 30
const MAX_COMMANDS = 15
const MAX_MARKS = 40

const MARK_SIGNS: Record<Mark, [sign: string, says: string]> = {
  edit: ["±", "edited"],
  failed: ["✗", "failed"],
  commit: ["●", "committed"],
  summary: ["≡", "summary"],
}

/** The person's prompts, each with marks for what happened before the next one. */
export function outlineHtml(shape: ConversationShape, addressOf: (number: number) => string): Html {
  const { prompts } = shape
  const byPrompt = marksByPrompt(shape)
  const items = prompts.map(({ number, text, at }) => {
    const own = byPrompt.get(number) ?? []
    const counts = (["edit", "failed", "commit", "summary"] as const).flatMap((mark) => {
      const found = own.filter((one) => one.mark === mark)
      if (found.length === 0) return []
      const [sign, says] = MARK_SIGNS[mark]
      return [
        html`<a class="mark ${mark}" href="${addressOf(found[0]!.number)}" title="${found
          .slice(0, MAX_MARKS)
          .map((one) => `${says}: ${one.text.slice(0, 100)}`)
          .join("\n")}"><span aria-hidden="true">${sign}</span>${found.length}<span class="unseen"> ${says}</span></a>`,
      ]
    })
    return html`<li><a href="${addressOf(number)}" data-number="${number}"${at !== undefined && html` title="${localMinute(at)}"`}>${text}</a>${counts.length > 0 && html`<span class="marks">${counts}</span>`}</li>`
  })
  return items.length === 0 ? html`<p class="none">There are no prompts by a person.</p>` : html`<ol>${items}</ol>`
}

/** Sorts by message number, which is nearly always the order in time. */
function marksByPrompt({ prompts, marks }: ConversationShape): Map<number, ConversationShape["marks"]> {
  const byPrompt = new Map<number, ConversationShape["marks"]>()
  const sorted = prompts.toSorted((a, b) => a.number - b.number)
  let next = 0
  for (const mark of marks.toSorted((a, b) => a.number - b.number)) {
    while (next < sorted.length && sorted[next]!.number <= mark.number) byPrompt.set(sorted[next++]!.number, [])
    if (next > 0) byPrompt.get(sorted[next - 1]!.number)!.push(mark)
  }
  return byPrompt
}

/** Cost, files, commits, test runs, failures and subagents, with links to their messages. */
export function factsHtml(
  row: ConversationRow,
  shape: ConversationShape,
  subagents: Subagents,
  addressOf: (number: number) => string,
  to: Addresses,
): Html {
  const changed = [...shape.files.values()]
    .filter(({ isRead }) => !isRead)
    .sort((a, b) => b.added + b.removed - a.added - a.removed)
  const read = shape.files.size - changed.length
  const tests = shape.commands.filter(({ isTest }) => isTest)
  const failures = shape.commands.filter(({ failed, isTest }) => failed && !isTest)
  const root = row.project
  const path = (name: string) =>
    root !== undefined && name.startsWith(`${root}/`) ? name.slice(root.length + 1) : name
  const fileLink = (name: string) =>
    root !== undefined && name.startsWith(`${root}/`) ? to.file(root, path(name)) : undefined
  return html`${costHtml(shape)}${section(
    "Files changed",
    changed.length,
    changed.slice(0, MAX_FILES).map((file) => {
      const shown = path(file.path)
      const link = fileLink(file.path)
      return html`<li><a href="${link ?? addressOf(file.number)}" title="${file.path}">${shown}</a> <a class="count" href="${addressOf(file.number)}"><span class="added">+${file.added}</span> <span class="removed">−${file.removed}</span></a></li>`
    }),
    changed.length > MAX_FILES
      ? `and ${changed.length - MAX_FILES} more`
      : read > 0
        ? `${many(read, "more file")} only read`
        : undefined,
  )}${section(
    "Commits",
    shape.made.length,
    shape.made.map(({ number, name, subject, isCommit }) =>
      isCommit && root !== undefined
        ? html`<li><a href="${to.commit(root, name)}"><code>${name.slice(0, 8)}</code></a> <a href="${addressOf(number)}">${subject}</a></li>`
        : html`<li><a href="${addressOf(number)}">${subject}</a></li>`,
    ),
  )}${section(
    "Test runs",
    tests.length,
    tests.slice(-MAX_COMMANDS).map((one) => commandHtml(one, addressOf)),
    tests.length > MAX_COMMANDS ? `the last ${MAX_COMMANDS}` : undefined,
  )}${section(
    "Other failures",
    failures.length,
    failures.slice(-MAX_COMMANDS).map((one) => commandHtml(one, addressOf)),
    failures.length > MAX_COMMANDS ? `the last ${MAX_COMMANDS}` : undefined,
  )}${section(
    "Subagents",
    subagents.all.length,
    subagents.all.map(
      (one) => html`<li><a href="${to.read(formatRef(one.ref))}">${conversationOf(one).title}</a></li>`,
    ),
  )}`
}

function section(title: string, count: number, items: Html[], note?: string): Html | undefined {
  if (items.length === 0) return undefined
  return html`<section><h2>${title} <span class="count">${count}</span></h2><ul>${items}</ul>${note !== undefined && html`<p class="note">${note}</p>`}</section>`
}

function commandHtml(
  { number, command, failed }: ConversationShape["commands"][number],
  addressOf: (number: number) => string,
): Html {
  const [sign, says] = failed === undefined ? ["·", "not reported"] : failed ? ["✗", "failed"] : ["✓", "passed"]
  return html`<li class="${says}"><span aria-hidden="true">${sign}</span><span class="unseen">${says}</span> <a href="${addressOf(number)}" title="${command.slice(0, 500)}"><code>${command.split("\n", 1)[0]!.slice(0, 120)}</code></a></li>`
}

function costHtml({ spent, unpriced }: ConversationShape): Html | undefined {
  const last = spent.at(-1)
  if (!last) return undefined
  const points = spent.map(({ cost, tokens }) => (last.cost > 0 ? cost : tokens))
  const without =
    unpriced > 0 ? html`<p class="note">${formatCount(unpriced)} tokens have no known price.</p>` : undefined
  return html`<section><h2>Cost</h2><p class="cost"><b>${last.cost > 0 ? `$${last.cost.toFixed(2)}` : "no price known"}</b> <span>${formatCount(last.tokens)} tokens at list price</span></p>${lineChart(points, "Cost over the conversation")}${without}</section>`
}
