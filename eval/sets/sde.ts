import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { BENCH_DIR, type Chat, requirePath } from "../set.ts"

/** A bug report whose right fix was decided in one conversation, or decided in one and changed in a later one. */
export type BugReport = { task: string; text: string; decidedIn: string; changedBy?: string }

type Turn = { role: "user" | "assistant"; text?: string; content?: string }
type Task = {
  task_id: string
  source: "conversation" | "conversation-amended" | "history"
  bug_report: string
  conversations?: Turn[] | Turn[][]
}

/**
 * sde-bench: bug reports that depend on a decision nobody can guess, and the conversations of one project, most about other
 * things.
 */
export function sdeBench(): { chats: Chat[]; reports: BugReport[] } {
  const folder = requirePath(join(BENCH_DIR, "sde-bench"))
  const read = <T>(path: string) => JSON.parse(readFileSync(join(folder, path), "utf8")) as T
  const decoys = read<{ id: string; turns: Turn[] }[]>("gen/decoy_conversations.json")
  const chats = decoys.map(({ turns }, i) => chatOf(`decoy-${i}`, turns))
  const reports: BugReport[] = []
  for (const name of readdirSync(folder).sort()) {
    if (!name.startsWith("boltons-")) continue
    const { task_id: task, source, bug_report: text, conversations = [] } = read<Task>(`${name}/tasks/main/task.json`)
    if (conversations.length === 0) continue
    const led = source === "conversation" ? [conversations as Turn[]] : (conversations as Turn[][])
    for (const [i, turns] of led.entries()) chats.push(chatOf(chatName(task, i), turns))
    reports.push({ task, text, decidedIn: chatName(task, 0), ...(led.length > 1 && { changedBy: chatName(task, 1) }) })
  }
  return { chats, reports }
}

export function taskOf(chat: string): string | undefined {
  return /^(.*) conversation \d+$/.exec(chat)?.[1]
}

function chatName(task: string, i: number): string {
  return `${task} conversation ${i + 1}`
}

function chatOf(id: string, turns: Turn[]): Chat {
  const docs = turns.map(({ role, text, content }, i) => ({ id: `${id}#${i + 1}`, role, text: text ?? content ?? "" }))
  return { id, project: "sde", docs }
}
