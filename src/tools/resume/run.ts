import type { Agent } from "../../agents/agent.ts"
import { besideOf, formatRef } from "../../core/ref.ts"
import { isFolder, lookAt } from "../../files/look-at.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { agentNamed, resolveRef, whyNoFolder } from "../resolve.ts"

export async function run(dex: Dex, input: { id: string }) {
  const { row } = await resolveRef(dex, input.id)
  const main = row.parent ? ((await (await dex.store()).conversation(besideOf(row.ref, row.parent.id))) ?? row) : row
  const folder = [...main.cwds, main.project].find((path) => path !== undefined && isFolder(path))
  const agent = await agentNamed(dex, main.ref.source)
  const problem = problemOf(agent, main, folder)
  return {
    id: formatRef(main.ref),
    title: main.title?.text ?? "(no title)",
    command: agent?.resume?.(main.ref.id, main.path) ?? [],
    ...(folder !== undefined && { folder }),
    ...(problem !== undefined && { problem }),
  }
}

function problemOf(agent: Agent | undefined, row: ConversationRow, folder: string | undefined): string | undefined {
  if (!agent?.resume)
    return `dex cannot open a ${row.ref.source} conversation. Read it with: dex show ${formatRef(row.ref)}`
  const isThere = row.path.includes("[REDACTED:") || lookAt(row.path) !== undefined
  if (row.archived || !isThere) {
    return `The agent's file is not here (deleted, or on another machine), so the agent cannot continue it. dex still has the conversation: dex handover ${formatRef(row.ref)}`
  }
  if (folder === undefined && row.cwds.length > 0)
    return `Its folder ${whyNoFolder(row.cwds)} (${row.cwds[0]}). Read it with: dex show ${formatRef(row.ref)}`
  return undefined
}
