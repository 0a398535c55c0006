import { localMinute } from "../../core/dates.ts"
import { formatCount } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import { pathBelowAny, pathRootsOf } from "../../learn/paths.ts"
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

const MARK_SIGNS: Record<Mark, [sign: string, label: string]> = {
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
    const promptMarks = byPrompt.get(number) ?? []
    const counts = (["edit", "failed", "commit", "summary"] as const).flatMap((mark) => {
      const marks = promptMarks.filter((candidate) => candidate.mark === mark)
      if (marks.length === 0) return []
      const [sign, label] = MARK_SIGNS[mark]
      return [
        html`<a class="mark ${mark}" href="${addressOf(marks[0]!.number)}" title="${marks
          .slice(0, MAX_MARKS)
          .map((mark) => `${label}: ${mark.text.slice(0, 100)}`)
          .join(
            "\n",
          )}"><span aria-hidden="true">${sign}</span>${marks.length}<span class="unseen"> ${label}</span></a>`,
      ]
    })
    return html`<li><a href="${addressOf(number)}" data-number="${number}"${at !== undefined && html` title="${localMinute(at)}"`}>${text}</a>${counts.length > 0 && html`<span class="marks">${counts}</span>`}</li>`
  })
  return items.length === 0 ? html`<p class="none">There are no prompts by a person.</p>` : html`<ol>${items}</ol>`
}

/** Groups the marks by prompt. Message numbers decide the order, which is nearly always the order in time. */
function marksByPrompt({ prompts, marks }: ConversationShape): Map<number, ConversationShape["marks"]> {
  const byPrompt = new Map<number, ConversationShape["marks"]>()
  const sorted = prompts.toSorted((a, b) => a.number - b.number)
  let nextPrompt = 0
  for (const mark of marks.toSorted((a, b) => a.number - b.number)) {
    while (nextPrompt < sorted.length && sorted[nextPrompt]!.number <= mark.number)
      byPrompt.set(sorted[nextPrompt++]!.number, [])
    if (nextPrompt > 0) byPrompt.get(sorted[nextPrompt - 1]!.number)!.push(mark)
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
  const changedFiles = [...shape.files.values()]
    .filter(({ isRead }) => !isRead)
    .sort((a, b) => b.added + b.removed - a.added - a.removed)
  const readCount = shape.files.size - changedFiles.length
  const tests = shape.commands.filter(({ isTest }) => isTest)
  const failures = shape.commands.filter(({ failed, isTest }) => failed && !isTest)
  const root = row.project
  // A file in another clone or in a worktree is the project's file, too.
  const roots = pathRootsOf(row)
  return html`${costHtml(shape)}${sectionHtml(
    "Files changed",
    changedFiles.length,
    changedFiles.slice(0, MAX_FILES).map((file) => {
      const path = pathBelowAny(roots, file.path)
      const link = root !== undefined && path !== undefined ? to.file(root, path) : addressOf(file.number)
      return html`<li><a href="${link}" title="${file.path}">${path ?? file.path}</a> <a class="count" href="${addressOf(file.number)}"><span class="added">+${file.added}</span> <span class="removed">−${file.removed}</span></a></li>`
    }),
    changedFiles.length > MAX_FILES
      ? `and ${changedFiles.length - MAX_FILES} more`
      : readCount > 0
        ? `${many(readCount, "more file")} only read`
        : undefined,
  )}${sectionHtml(
    "Commits",
    shape.commitsAndPullRequests.length,
    shape.commitsAndPullRequests.map(({ number, name, subject, isCommit }) =>
      isCommit && root !== undefined
        ? html`<li><a href="${to.commit(root, name)}"><code>${name.slice(0, 8)}</code></a> <a href="${addressOf(number)}">${subject}</a></li>`
        : html`<li><a href="${addressOf(number)}">${subject}</a></li>`,
    ),
  )}${sectionHtml(
    "Test runs",
    tests.length,
    tests.slice(-MAX_COMMANDS).map((command) => commandHtml(command, addressOf)),
    tests.length > MAX_COMMANDS ? `the last ${MAX_COMMANDS}` : undefined,
  )}${sectionHtml(
    "Other failures",
    failures.length,
    failures.slice(-MAX_COMMANDS).map((command) => commandHtml(command, addressOf)),
    failures.length > MAX_COMMANDS ? `the last ${MAX_COMMANDS}` : undefined,
  )}${sectionHtml(
    "Subagents",
    subagents.all.length,
    subagents.all.map(
      (subagent) => html`<li><a href="${to.read(formatRef(subagent.ref))}">${conversationOf(subagent).title}</a></li>`,
    ),
  )}`
}

function sectionHtml(title: string, count: number, items: Html[], note?: string): Html | undefined {
  if (items.length === 0) return undefined
  return html`<section><h2>${title} <span class="count">${count}</span></h2><ul>${items}</ul>${note !== undefined && html`<p class="note">${note}</p>`}</section>`
}

function commandHtml(
  { number, command, failed }: ConversationShape["commands"][number],
  addressOf: (number: number) => string,
): Html {
  const [sign, label] = failed === undefined ? ["·", "not reported"] : failed ? ["✗", "failed"] : ["✓", "passed"]
  return html`<li class="${label}"><span aria-hidden="true">${sign}</span><span class="unseen">${label}</span> <a href="${addressOf(number)}" title="${command.slice(0, 500)}"><code>${command.split("\n", 1)[0]!.slice(0, 120)}</code></a></li>`
}

function costHtml({ spent, unpriced }: ConversationShape): Html | undefined {
  const totals = spent.at(-1)
  if (!totals) return undefined
  const points = spent.map(({ cost, tokens }) => (totals.cost > 0 ? cost : tokens))
  const section = (cost: string, tokens: string, note?: Html) =>
    html`<section><h2>Cost</h2><p class="cost"><b>${cost}</b> <span>${tokens}</span></p>${lineChart(points, "Cost over the conversation")}${note}</section>`
  const pricedTokens = totals.tokens - unpriced
  if (pricedTokens === 0) return section("no price known", `${formatCount(totals.tokens)} tokens`)
  return section(
    `$${totals.cost.toFixed(2)}`,
    `${formatCount(pricedTokens)} tokens at list price`,
    unpriced > 0 ? html`<p class="note">${formatCount(unpriced)} tokens have no known price.</p>` : undefined,
  )
}
