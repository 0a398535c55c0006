import type { Agent } from "../../agents/kit/agent.ts"
import { lookAt } from "../../core/look-at.ts"
import { isSamePath } from "../../core/path-key.ts"
import { formatRef, siblingRef } from "../../core/ref.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { type FolderToOpen, folderToOpen } from "../folder-to-open.ts"
import { agentNamed, resolveRef } from "../resolve.ts"
import { type Bringing, bring, bringingOf, stepsOf } from "./bring.ts"
import type { ResumeInput } from "./resume.ts"

export async function run(dex: Dex, input: ResumeInput) {
  const { row } = await resolveRef(dex, input.id)
  const main = row.parent ? ((await (await dex.store()).conversation(siblingRef(row.ref, row.parent.id))) ?? row) : row
  const folderToUse = folderToOpen(dex, main, input.here === true)
  const agent = await agentNamed(dex, main.ref.source)
  const problem = problemOf(agent, main, folderToUse)
  const { folder } = folderToUse
  const { id, plan }: Bringing =
    problem === undefined && folder !== undefined ? await bringingOf(dex, agent!, main, folder) : { id: main.ref.id }
  if (plan !== undefined && input.yes) await bring(dex, main, folder!, plan)
  return {
    id: formatRef(main.ref),
    title: main.title?.text ?? "(no title)",
    command: agent?.resume?.(id, main.path, folder !== undefined && isElsewhere(dex, main, folder)) ?? [],
    folder,
    note: problem === undefined ? folderToUse.why : undefined,
    problem,
    copy: plan && { agent: agent!.name, ...stepsOf(plan), done: input.yes === true },
  }
}

function problemOf(agent: Agent | undefined, row: ConversationRow, folderToUse: FolderToOpen): string | undefined {
  const ref = formatRef(row.ref)
  if (!agent?.resume) return `dex cannot open a ${row.ref.source} conversation. Read it with: dex show ${ref}`
  // The path is empty if the database row with it is damaged.
  const fileExists = row.path === "" || row.path.includes("[REDACTED:") || lookAt(row.path) !== undefined
  if (row.archived || !fileExists) {
    return `The agent's own file was deleted or is on another machine, so the agent cannot continue the conversation. dex can hand it over: dex handover ${ref}`
  }
  if (row.ref.id.startsWith("-"))
    return `${agent.name} would read this conversation's id as an option. dex can hand it over: dex handover ${ref}`
  if (folderToUse.folder === undefined && row.cwds.length > 0)
    return `${folderToUse.why}. The agent may not find the conversation there; a handover works in any folder: dex handover ${ref} --to ${row.ref.source} --here`
  return undefined
}

/** Whether the agent worked anywhere else than in this folder. */
function isElsewhere(dex: Dex, { cwds }: ConversationRow, folder: string): boolean {
  return cwds.some((cwd) => !isSamePath(cwd, folder, dex.machine.platform))
}
