import { setImmediate as nextTurn } from "node:timers/promises"
import { grouped } from "../../core/format.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many, projectNames, shortPath } from "../../render/words.ts"
import type { Work } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { dateRange } from "../../tools/fields.ts"
import { isUngrouped, UNGROUPED } from "../../tools/usage/groups.ts"
import { usage } from "../../tools/usage/usage.ts"
import { dollars, shortCount } from "../../usage/line.ts"
import { stackBar } from "../charts.ts"
import { type PageRequest, runToolForPage, type ViewPage } from "../page.ts"
import { emptySection, requestedRange, sectionPage } from "./late-section.ts"

const MAX_PROJECTS = 12
/** The maximum number of conversations to count, because counting reads every edit of a conversation. */
const MAX_COUNTED_CONVERSATIONS = 500
const BATCH_SIZE = 25

/** Each project with its work and cost in the period. */
export async function projectsPart(request: PageRequest): Promise<ViewPage> {
  const { dex, query, to } = request
  const range = requestedRange(query)
  if (!dex.hasHistory()) return emptySection(request, "Projects", "No conversations have been read yet.")
  const usageOutput = await runToolForPage(dex, usage, { by: "project", limit: 1_000, ...range })
  const { workByProject, left_out } = await workIn(dex, dateRange(range, dex.now()))
  const sums = new Map(usageOutput.rows.map((row) => [row.key, row]))
  const projects = [...new Set([...sums.keys(), ...workByProject.keys()])]
    .map((name) => ({ name, sum: sums.get(name), work: workByProject.get(name) }))
    .sort((a, b) => (b.sum?.cost ?? 0) - (a.sum?.cost ?? 0) || (b.sum?.tokens ?? 0) - (a.sum?.tokens ?? 0))
  if (projects.length === 0) return emptySection(request, "Projects", "No conversations in this period.")
  const maxCost = Math.max(...projects.map(({ sum }) => sum?.cost ?? 0))
  const nameOf = projectNames(projects.map(({ name }) => name).filter((name) => !isUngrouped(name)))
  const rows = projects.slice(0, MAX_PROJECTS).map(({ name, sum, work }) => {
    const isNamed = !isUngrouped(name)
    const title = isNamed
      ? html`<a class="title" href="${to.find({ project: name, ...range })}" title="${shortPath(name, dex.machine.home)}">${nameOf(name)}</a>`
      : html`${name}`
    const conversations = Math.max(sum?.conversations ?? 0, work?.conversations ?? 0)
    return html`<tr class="row" tabindex="-1"><th scope="row">${title}</th><td class="more">${grouped(conversations)}</td><td>${work ? linesHtml(work) : ""}</td><td>${work ? grouped(work.commits) : ""}</td><td class="more">${sum && shortCount(sum.tokens)}</td><td>${sum && dollars(sum.cost)}</td><td class="bar">${sum && sum.cost > 0 && stackBar([sum.cost], maxCost, `${dollars(sum.cost)} of ${dollars(maxCost)}, the most`)}</td></tr>`
  })
  const headings = html`<th scope="col">Project</th><th scope="col" class="more">Conversations</th><th scope="col">Lines</th><th scope="col">Commits</th><th scope="col" class="more">Tokens</th><th scope="col">Cost</th><td class="bar"></td>`
  const notes = [
    ...(projects.length > MAX_PROJECTS
      ? [`${many(projects.length - MAX_PROJECTS, "more project is", "more projects are")} not shown.`]
      : []),
    "Lines and commits are those of every conversation that was active in these days, from its beginning.",
    ...(left_out > 0
      ? [
          `Lines and commits of the newest ${MAX_COUNTED_CONVERSATIONS} conversations; ${grouped(left_out)} older ones are not counted.`,
        ]
      : []),
  ]
  return sectionPage(
    request,
    "Projects",
    html`<table class="figures projects"><thead><tr>${headings}</tr></thead><tbody>${rows}</tbody></table>${notes.map((note) => html`<p class="note">${note}</p>`)}`,
  )
}

function linesHtml({ lines_added, lines_removed }: Work): Html {
  if (lines_added + lines_removed === 0) return html`0`
  return html`<span class="added">+${grouped(lines_added)}</span> <span class="removed">−${grouped(lines_removed)}</span>`
}

/** Counts lines and commits by project, including those of subagents. */
async function workIn(dex: Dex, range: { from?: number; to?: number }) {
  const store = await dex.store()
  const { rows, total } = await store.list({
    ...range,
    kinds: ["person", "subagent", "automation"],
    inside: dex.project,
    limit: MAX_COUNTED_CONVERSATIONS,
    offset: 0,
  })
  const work: Work[] = []
  for (let i = 0; i < rows.length; i += BATCH_SIZE) {
    await nextTurn() // lets other requests run in between
    work.push(...(await store.work(rows.slice(i, i + BATCH_SIZE).map(({ ref }) => ref))))
  }
  const workByProject = new Map<string, Work & { conversations: number }>()
  for (const [i, { project = UNGROUPED.project, kind }] of rows.entries()) {
    const conversationWork = work[i]!
    const sum = workByProject.get(project) ?? {
      lines_added: 0,
      lines_removed: 0,
      files: 0,
      commits: 0,
      conversations: 0,
    }
    sum.lines_added += conversationWork.lines_added
    sum.lines_removed += conversationWork.lines_removed
    sum.commits += conversationWork.commits
    sum.conversations += kind === "person" ? 1 : 0
    workByProject.set(project, sum)
  }
  return { workByProject, left_out: total - rows.length }
}
