import { type Html, html } from "../../render/html/html.ts"
import { age, many, projectName, shortPath, when } from "../../render/words.ts"
import { list } from "../../tools/list/list.ts"
import { agentNamed } from "../../tools/resolve.ts"
import { askTool, type PageRequest, type ViewPage } from "../page.ts"

const NEWEST = 10

/** The newest conversations. It follows what agents write while the page is open. */
export async function newestSection({ dex, to }: PageRequest): Promise<Html> {
  const { conversations, total } = await askTool(dex, list, { limit: NEWEST })
  const rows = await Promise.all(
    conversations.map(async ({ id, title, project, source, date, message_count, commits, ...work }) => {
      const agent = (await agentNamed(dex, source))?.name ?? source
      return html`<li class="row" tabindex="-1"><a class="title" href="${to.read(id)}">${title}</a><p class="line"><time datetime="${date}" title="${when(date)}">${date === "" ? "no date" : `${age(date, dex.now())} ago`}</time><span title="${shortPath(project, dex.machine.home)}">${projectName(project)}</span><span>${agent}</span><span>${many(message_count, "message")}</span>${work.lines_added + work.lines_removed > 0 && html`<span><span class="added">+${work.lines_added}</span> <span class="removed">−${work.lines_removed}</span></span>`}${commits > 0 && html`<span>${many(commits, "commit")}</span>`}</p></li>`
    }),
  )
  const more = total > NEWEST && html`<p class="note"><a href="${to.find()}">All ${many(total, "conversation")}</a></p>`
  return html`<section class="newest" data-live="${to.to("newest")}"><h2>Newest</h2>${rows.length === 0 ? html`<p class="none">No conversation of a person.</p>` : html`<ol class="rows">${rows}</ol>`}${more}</section>`
}

export async function newestPart(request: PageRequest): Promise<ViewPage> {
  return { title: "Newest", isPart: true, body: await newestSection(request) }
}
