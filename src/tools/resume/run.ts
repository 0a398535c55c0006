import type { Agent } from "../../agents/kit/agent.ts"
import { lookAt } from "../../core/look-at.ts"
import { formatRef, siblingRef } from "../../core/ref.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { type FolderToOpen, folderToOpen } from "../folder-to-open.ts"
import { agentNamed, resolveRef } from "../resolve.ts"
import type { ResumeInput } from "./resume.ts"

export async function run(dex: Dex, input: ResumeInput) {
  const { row } = await resolveRef(dex, input.id)
  const main = row.parent ? ((await (await dex.store()).conversation(siblingRef(row.ref, row.parent.id))) ?? row) : row
  const folderToUse = await folderToOpen(dex, main, input.here === true)
  const agent = await agentNamed(dex, main.ref.source)
  const problem = problemOf(agent, main, folderToUse)
  return {
    id: formatRef(main.ref),
    title: main.title?.text ?? "(no title)",
    command: agent?.resume?.(main.ref.id, main.path) ?? [],
    folder: folderToUse.folder,
    note: problem === undefined ? folderToUse.why : undefined,
    problem,
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
  if (folderToUse.folder === undefined && row.cwds.length > 0)
    return `${folderToUse.why}. The agent may not find the conversation there; a handover works in any folder: dex handover ${ref} --to ${row.ref.source} --here`
  return undefined
}
